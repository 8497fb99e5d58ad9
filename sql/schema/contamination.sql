-- Whether a benchmark leaked into training.

create schema if not exists contamination;

create table contamination.benchmarks (
    benchmark text not null,
    version text not null,
    n_examples integer,
    n_dropped integer,
    published_on date,
    licence text,
    url text,
    sha256 text,
    status text not null,
    reason text,
    primary key (benchmark)
);
comment on table contamination.benchmarks is 'a benchmark in its published order';
comment on column contamination.benchmarks.benchmark is 'name';
comment on column contamination.benchmarks.version is 'version';
comment on column contamination.benchmarks.n_examples is 'examples kept';
comment on column contamination.benchmarks.n_dropped is 'examples dropped by rule';
comment on column contamination.benchmarks.published_on is 'day of publication';
comment on column contamination.benchmarks.licence is 'licence';
comment on column contamination.benchmarks.url is 'where it comes from';
comment on column contamination.benchmarks.sha256 is 'digest of the file';
comment on column contamination.benchmarks.status is 'ok, or a word for what stands in the way';
comment on column contamination.benchmarks.reason is 'one plain sentence when the status is not ok';

create table contamination.order_checks (
    benchmark text not null,
    check_name text not null,
    statistic double,
    p_value double,
    n_permutations integer,
    status text not null,
    reason text,
    primary key (benchmark, check_name),
    check (p_value > 0 and p_value <= 1)
);
comment on table contamination.order_checks is 'whether that order is itself exchangeable';
comment on column contamination.order_checks.benchmark is 'name';
comment on column contamination.order_checks.check_name is 'statistic, or combined';
comment on column contamination.order_checks.statistic is 'value of the published order';
comment on column contamination.order_checks.p_value is 'exact permutation p-value';
comment on column contamination.order_checks.n_permutations is 'permutations drawn';
comment on column contamination.order_checks.status is 'ok, or a word for what stands in the way';
comment on column contamination.order_checks.reason is 'one plain sentence when the status is not ok';

create table contamination.order_logliks (
    model text not null,
    benchmark text not null,
    shard integer not null,
    permutation integer not null,
    seed ubigint,
    loglik double,
    n_tokens integer,
    dtype text not null,
    status text not null,
    reason text,
    primary key (model, benchmark, shard, permutation),
    check (isfinite(loglik))
);
comment on table contamination.order_logliks is 'log-likelihood of one ordering';
comment on column contamination.order_logliks.model is 'the model, as users write it';
comment on column contamination.order_logliks.benchmark is 'name';
comment on column contamination.order_logliks.shard is 'shard, from 0';
comment on column contamination.order_logliks.permutation is '0 = the published order';
comment on column contamination.order_logliks.seed is 'seed of the permutation';
comment on column contamination.order_logliks.loglik is 'sum of log-probabilities, nats';
comment on column contamination.order_logliks.n_tokens is 'tokens scored';
comment on column contamination.order_logliks.dtype is 'number format of the weights';
comment on column contamination.order_logliks.status is 'ok, or a word for what stands in the way';
comment on column contamination.order_logliks.reason is 'one plain sentence when the status is not ok';

create table contamination.shard_tests (
    model text not null,
    benchmark text not null,
    shard integer not null,
    n_permutations integer,
    exceedances integer,
    p_value double,
    resolution double,
    z_score double,
    stopped_early boolean,
    status text not null,
    reason text,
    primary key (model, benchmark, shard),
    check (p_value > 0 and p_value <= 1)
);
comment on table contamination.shard_tests is 'one shard''s permutation test';
comment on column contamination.shard_tests.model is 'the model, as users write it';
comment on column contamination.shard_tests.benchmark is 'name';
comment on column contamination.shard_tests.shard is 'shard, from 0';
comment on column contamination.shard_tests.n_permutations is 'permutations drawn';
comment on column contamination.shard_tests.exceedances is 'shuffled orders at least as likely';
comment on column contamination.shard_tests.p_value is '(1 + exceedances) / (permutations + 1)';
comment on column contamination.shard_tests.resolution is 'smallest p this budget can reach';
comment on column contamination.shard_tests.z_score is 'descriptive only';
comment on column contamination.shard_tests.stopped_early is 'whether a look ended it';
comment on column contamination.shard_tests.status is 'ok, or a word for what stands in the way';
comment on column contamination.shard_tests.reason is 'one plain sentence when the status is not ok';

create table contamination.tests (
    model text not null,
    benchmark text not null,
    method text not null,
    statistic double,
    p_value double,
    n_shards integer,
    resolution double,
    alpha double not null,
    q_value double,
    verdict text not null,
    reason text,
    summary text,
    primary key (model, benchmark, method),
    check (p_value > 0 and p_value <= 1)
);
comment on table contamination.tests is 'the verdict for a model and benchmark';
comment on column contamination.tests.model is 'the model, as users write it';
comment on column contamination.tests.benchmark is 'name';
comment on column contamination.tests.method is 'statistic used';
comment on column contamination.tests.statistic is 'its value';
comment on column contamination.tests.p_value is 'exact p-value';
comment on column contamination.tests.n_shards is 'shards';
comment on column contamination.tests.resolution is 'smallest reachable p';
comment on column contamination.tests.alpha is 'level of the verdict';
comment on column contamination.tests.q_value is 'Benjamini-Hochberg over models and benchmarks';
comment on column contamination.tests.verdict is 'contaminated, no evidence, order_not_exchangeable, inconclusive';
comment on column contamination.tests.reason is 'one plain sentence';
comment on column contamination.tests.summary is 'the summary as printed';
