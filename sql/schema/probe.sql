-- The release probe: what was asked, what was answered, what follows.

create schema if not exists probe;

create table probe.rounds (
    model text not null,
    run_id text not null,
    replicate integer not null,
    round integer not null,
    messages text,
    reply text,
    usage text,
    status text not null,
    reason text,
    asked_at timestamp,
    primary key (model, run_id, replicate, round)
);
comment on table probe.rounds is 'one exchange with a model';
comment on column probe.rounds.model is 'the model, as users write it';
comment on column probe.rounds.run_id is 'identity of the probe run';
comment on column probe.rounds.replicate is 'pass, from 0';
comment on column probe.rounds.round is 'round within the pass, from 0';
comment on column probe.rounds.messages is 'the messages sent, as JSON';
comment on column probe.rounds.reply is 'the raw reply';
comment on column probe.rounds.usage is 'token usage and the parameters really used, as JSON';
comment on column probe.rounds.status is 'ok, or a word for what stands in the way';
comment on column probe.rounds.reason is 'one plain sentence when the status is not ok';
comment on column probe.rounds.asked_at is 'UTC instant of the reply';

create table probe.answers (
    model text not null,
    run_id text not null,
    replicate integer not null,
    round integer not null,
    question integer not null,
    position integer not null,
    released_on date not null,
    project text not null,
    version text not null,
    kind text not null,
    answer text,
    p_yes double,
    weight double,
    parse_status text not null,
    primary key (model, run_id, replicate, round, question),
    check (kind in ('real', 'decoy')),
    check (answer in ('YES', 'NO', 'UNKNOWN')),
    check (p_yes between 0 and 1)
);
comment on table probe.answers is 'one question answered';
comment on column probe.answers.model is 'the model, as users write it';
comment on column probe.answers.run_id is 'identity of the probe run';
comment on column probe.answers.replicate is 'pass, from 0';
comment on column probe.answers.round is 'round within the pass, from 0';
comment on column probe.answers.question is 'index of the question within its round';
comment on column probe.answers.position is 'index of the day in the calendar';
comment on column probe.answers.released_on is 'the calendar day';
comment on column probe.answers.project is 'project name';
comment on column probe.answers.version is 'the version asked about';
comment on column probe.answers.kind is 'real or decoy';
comment on column probe.answers.answer is 'YES, NO, UNKNOWN; NULL where missing';
comment on column probe.answers.p_yes is 'probability of YES, where it can be read';
comment on column probe.answers.weight is 'weight in the modelclock likelihood';
comment on column probe.answers.parse_status is 'ok, or why the answer is missing';

create table probe.posteriors (
    model text not null,
    run_id text not null,
    estimator text not null,
    replicate integer not null,
    position integer not null,
    released_on date,
    probability double not null,
    primary key (model, run_id, estimator, replicate, position),
    check (probability between 0 and 1.000000001)
);
comment on table probe.posteriors is 'posterior mass at a position';
comment on column probe.posteriors.model is 'the model, as users write it';
comment on column probe.posteriors.run_id is 'identity of the probe run';
comment on column probe.posteriors.estimator is 'calibrated or modelclock';
comment on column probe.posteriors.replicate is 'pass, or -1 for all passes together';
comment on column probe.posteriors.position is 'position in the calendar';
comment on column probe.posteriors.released_on is 'calendar day before which knowledge stops';
comment on column probe.posteriors.probability is 'posterior mass';

create table probe.boundaries (
    model text not null,
    run_id text not null,
    estimator text not null,
    policy text not null,
    provider text,
    dataset_version text not null,
    code_version text not null,
    estimate_from date,
    estimate_to date,
    low80 date,
    high80 date,
    low95 date,
    high95 date,
    decoy_yes integer,
    decoy_total integer,
    real_yes integer,
    real_total integer,
    replicates integer,
    rounds integer,
    questions integer,
    status text not null,
    reason text,
    details text,
    primary key (model, run_id, estimator)
);
comment on table probe.boundaries is 'a model''s dated boundary';
comment on column probe.boundaries.model is 'the model, as users write it';
comment on column probe.boundaries.run_id is 'identity of the probe run';
comment on column probe.boundaries.estimator is 'calibrated or modelclock';
comment on column probe.boundaries.policy is 'the policy that asked the questions';
comment on column probe.boundaries.provider is 'who served the model';
comment on column probe.boundaries.dataset_version is 'digest of the item set';
comment on column probe.boundaries.code_version is 'version of this product';
comment on column probe.boundaries.estimate_from is 'start of the estimated range';
comment on column probe.boundaries.estimate_to is 'end of the estimated range';
comment on column probe.boundaries.low80 is 'lower end of the 80 % interval';
comment on column probe.boundaries.high80 is 'upper end of the 80 % interval';
comment on column probe.boundaries.low95 is 'lower end of the 95 % interval';
comment on column probe.boundaries.high95 is 'upper end of the 95 % interval';
comment on column probe.boundaries.decoy_yes is 'decoys answered YES';
comment on column probe.boundaries.decoy_total is 'decoys answered';
comment on column probe.boundaries.real_yes is 'real releases answered YES';
comment on column probe.boundaries.real_total is 'real releases answered';
comment on column probe.boundaries.replicates is 'passes';
comment on column probe.boundaries.rounds is 'rounds over all passes';
comment on column probe.boundaries.questions is 'questions answered';
comment on column probe.boundaries.status is 'ok, or a word for what stands in the way';
comment on column probe.boundaries.reason is 'one plain sentence when the status is not ok';
comment on column probe.boundaries.details is 'evidences and stability figures, as JSON';
