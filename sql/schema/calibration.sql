-- How the estimators did on planted truth.

create schema if not exists calibration;

create table calibration.runs (
    estimator text not null,
    scenario text not null,
    seed bigint not null,
    truth double,
    estimate double,
    low80 double,
    high80 double,
    low95 double,
    high95 double,
    status text not null,
    found boolean not null,
    has_truth boolean not null,
    primary key (estimator, scenario, seed)
);
comment on table calibration.runs is 'one simulated run of an estimator';
comment on column calibration.runs.estimator is 'estimator';
comment on column calibration.runs.scenario is 'planted world';
comment on column calibration.runs.seed is 'seed of the run';
comment on column calibration.runs.truth is 'the planted value, on the scenario''s scale';
comment on column calibration.runs.estimate is 'the estimate';
comment on column calibration.runs.low80 is 'lower end of the 80 % interval';
comment on column calibration.runs.high80 is 'upper end of the 80 % interval';
comment on column calibration.runs.low95 is 'lower end of the 95 % interval';
comment on column calibration.runs.high95 is 'upper end of the 95 % interval';
comment on column calibration.runs.status is 'ok, or a word for what stands in the way';
comment on column calibration.runs.found is 'whether a finding was printed';
comment on column calibration.runs.has_truth is 'whether a true value exists';

create table calibration.recoveries (
    estimator text not null,
    scenario text not null,
    n_runs integer not null,
    n_found integer,
    coverage80 double,
    coverage95 double,
    rmse double,
    median_width double,
    false_findings integer,
    seed bigint,
    coverage80_found double,
    coverage95_found double,
    statuses text,
    primary key (estimator, scenario),
    check (n_runs > 0)
);
comment on table calibration.recoveries is 'how an estimator did on planted truth';
comment on column calibration.recoveries.estimator is 'estimator';
comment on column calibration.recoveries.scenario is 'planted world';
comment on column calibration.recoveries.n_runs is 'runs';
comment on column calibration.recoveries.n_found is 'runs that printed a finding';
comment on column calibration.recoveries.coverage80 is 'share of runs whose 80 % interval holds the truth';
comment on column calibration.recoveries.coverage95 is 'share of runs whose 95 % interval holds the truth';
comment on column calibration.recoveries.rmse is 'root mean square error, on the scenario''s scale';
comment on column calibration.recoveries.median_width is 'median width of the 95 % interval';
comment on column calibration.recoveries.false_findings is 'findings where no truth exists';
comment on column calibration.recoveries.seed is 'first seed';
comment on column calibration.recoveries.coverage80_found is 'the same of findings alone, as a reader of a report meets them';
comment on column calibration.recoveries.coverage95_found is 'the same of findings alone, for the 95 % interval';
comment on column calibration.recoveries.statuses is 'how often each status was given, the most frequent first';
