-- Whether a benchmark leaked into training.

create schema if not exists contamination;

create table contamination.benchmarks (
    benchmark text not null,
    version text not null,
    n_examples integer,
    n_dropped integer,
    n_cut integer,
    n_duplicates integer,
    n_characters bigint,
    published_on date,
    licence text,
    url text,
    sha256 text,
    order_digest text,
    status text not null,
    reason text,
    primary key (benchmark),
    check (status in ('ok', 'failed'))
);
comment on table contamination.benchmarks is 'a benchmark in its published order';
comment on column contamination.benchmarks.benchmark is 'name';
comment on column contamination.benchmarks.version is 'version';
comment on column contamination.benchmarks.n_examples is 'examples kept';
comment on column contamination.benchmarks.n_dropped is 'empty examples, dropped';
comment on column contamination.benchmarks.n_cut is 'examples of more than 4,000 characters, cut there';
comment on column contamination.benchmarks.n_duplicates is 'examples equal to an earlier one; they stay, and make ties';
comment on column contamination.benchmarks.n_characters is 'characters of all examples kept';
comment on column contamination.benchmarks.published_on is 'day of publication';
comment on column contamination.benchmarks.licence is 'licence';
comment on column contamination.benchmarks.url is 'where it comes from';
comment on column contamination.benchmarks.sha256 is 'digest of the file as fetched';
comment on column contamination.benchmarks.order_digest is 'digest of the kept examples in published order; permutations are seeded with it';
comment on column contamination.benchmarks.status is 'ok, or failed: it could not be fetched or read';
comment on column contamination.benchmarks.reason is 'one plain sentence when the status is not ok';

create table contamination.order_checks (
    benchmark text not null,
    check_name text not null,
    permutation_group text not null,
    order_digest text,
    n_shards integer not null,
    statistic double,
    z_score double,
    p_value double,
    n_permutations integer,
    is_gate boolean not null,
    status text not null,
    reason text,
    primary key (benchmark, check_name),
    check (p_value > 0 and p_value <= 1),
    check (status in ('ok', 'order_not_exchangeable'))
);
comment on table contamination.order_checks is 'whether that order is itself exchangeable';
comment on column contamination.order_checks.benchmark is 'name';
comment on column contamination.order_checks.check_name is 'which orders / permutation group / statistic; combined is the check itself';
comment on column contamination.order_checks.permutation_group is 'all, or window:w: which orders count as equally natural';
comment on column contamination.order_checks.order_digest is 'digest of the examples in the order that was checked';
comment on column contamination.order_checks.n_shards is 'shards within which orders are compared; 1 is the whole file';
comment on column contamination.order_checks.statistic is 'value of the published order';
comment on column contamination.order_checks.z_score is 'its distance from shuffled orders in standard deviations, descriptive only';
comment on column contamination.order_checks.p_value is 'exact permutation p-value';
comment on column contamination.order_checks.n_permutations is 'permutations drawn';
comment on column contamination.order_checks.is_gate is 'whether a failure blocks verdicts with this permutation group';
comment on column contamination.order_checks.status is 'ok, order_not_exchangeable: a combined check at or below the gate';
comment on column contamination.order_checks.reason is 'one plain sentence when the status is not ok';

create table contamination.order_logliks (
    model text not null,
    benchmark text not null,
    shard integer not null,
    permutation integer not null,
    seed ubigint,
    loglik double,
    n_tokens integer,
    permutation_group text not null,
    order_digest text,
    first_example integer,
    n_examples integer,
    sentinel_difference double,
    dtype text not null,
    batch_rows integer,
    device text,
    prefix_token integer,
    scorer_version text,
    library_versions text,
    settings_digest text not null,
    status text not null,
    reason text,
    context_length integer,
    n_distinct_orders integer,
    primary key (model, benchmark, shard, permutation),
    check (isfinite(loglik)),
    check (status in ('ok', 'nonfinite'))
);
comment on table contamination.order_logliks is 'log-likelihood of one ordering';
comment on column contamination.order_logliks.model is 'the model, as users write it';
comment on column contamination.order_logliks.benchmark is 'name';
comment on column contamination.order_logliks.shard is 'shard, from 0';
comment on column contamination.order_logliks.permutation is '0 = the published order, 1.. = shuffled orders as drawn, -1 = the published order reversed';
comment on column contamination.order_logliks.seed is 'seed of the permutation; NULL where nothing is drawn';
comment on column contamination.order_logliks.loglik is 'sum of log-probabilities, nats, added in fp64';
comment on column contamination.order_logliks.n_tokens is 'tokens scored: all after BOS';
comment on column contamination.order_logliks.permutation_group is 'all, or window:w: which orders are drawn';
comment on column contamination.order_logliks.order_digest is 'digest of the benchmark''s examples in published order; a verdict needs the order check of that very order';
comment on column contamination.order_logliks.first_example is 'position of the shard''s first example in the benchmark, from 0';
comment on column contamination.order_logliks.n_examples is 'examples in the shard';
comment on column contamination.order_logliks.sentinel_difference is 'largest change, nats, when this published order was scored again beside later looks; NULL if it was not';
comment on column contamination.order_logliks.dtype is 'number format of the computation';
comment on column contamination.order_logliks.batch_rows is 'token rows in one forward pass';
comment on column contamination.order_logliks.device is 'where it was computed';
comment on column contamination.order_logliks.prefix_token is 'id of the token before the first example; NULL where the tokenizer defines no BOS';
comment on column contamination.order_logliks.scorer_version is 'version of the scoring code';
comment on column contamination.order_logliks.library_versions is 'versions of the libraries that computed it; NULL behind an endpoint';
comment on column contamination.order_logliks.settings_digest is 'digest of benchmark order, shards, group, separator, run seed, weights, number format, scoring code and the context that the model''s entry states: rows of other settings are not reused';
comment on column contamination.order_logliks.status is 'ok; nonfinite: not finite, or a stand-in for a log-probability';
comment on column contamination.order_logliks.reason is 'one plain sentence when the status is not ok';
comment on column contamination.order_logliks.context_length is 'tokens that the model takes at once, BOS included; a longer ordering is scored in windows. NULL: without limit';
comment on column contamination.order_logliks.n_distinct_orders is 'orders of this shard that can be told apart, equal examples counted once, 1,000,000 at most';

create table contamination.shard_tests (
    model text not null,
    benchmark text not null,
    shard integer not null,
    n_permutations integer,
    exceedances integer,
    greater integer,
    p_value double,
    resolution double,
    z_score double,
    reversed_z double,
    published_loglik double,
    shuffled_mean double,
    shuffled_sd double,
    n_tokens integer,
    stopped_early boolean,
    status text not null,
    reason text,
    primary key (model, benchmark, shard),
    check (p_value > 0 and p_value <= 1),
    check (status in ('ok', 'nonfinite', 'inconclusive'))
);
comment on table contamination.shard_tests is 'one shard''s permutation test';
comment on column contamination.shard_tests.model is 'the model, as users write it';
comment on column contamination.shard_tests.benchmark is 'name';
comment on column contamination.shard_tests.shard is 'shard, from 0';
comment on column contamination.shard_tests.n_permutations is 'shuffled orders at the deciding look';
comment on column contamination.shard_tests.exceedances is 'shuffled orders at least as likely, ties counted';
comment on column contamination.shard_tests.greater is 'shuffled orders more likely, ties not counted';
comment on column contamination.shard_tests.p_value is '(1 + exceedances) / (permutations + 1)';
comment on column contamination.shard_tests.resolution is 'smallest p this budget can reach';
comment on column contamination.shard_tests.z_score is 'distance from the shuffled mean in their standard deviations, descriptive only';
comment on column contamination.shard_tests.reversed_z is 'the same for the reversed order, a diagnostic: a high value shows that neighbours are alike, a low one shows nothing';
comment on column contamination.shard_tests.published_loglik is 'log-likelihood of the published order, nats';
comment on column contamination.shard_tests.shuffled_mean is 'mean of the shuffled orders, nats';
comment on column contamination.shard_tests.shuffled_sd is 'their standard deviation (ddof 1), nats';
comment on column contamination.shard_tests.n_tokens is 'tokens of one ordering';
comment on column contamination.shard_tests.stopped_early is 'whether a look ended it';
comment on column contamination.shard_tests.status is 'ok; nonfinite: left out of the verdict; inconclusive: too few orders scored';
comment on column contamination.shard_tests.reason is 'one plain sentence when the status is not ok';

create table contamination.tests (
    model text not null,
    benchmark text not null,
    method text not null,
    is_verdict boolean not null,
    statistic double,
    p_value double,
    ln_p double,
    n_shards integer,
    n_permutations integer,
    resolution double,
    at_floor boolean,
    stopped_early boolean,
    alpha double not null,
    q_value double,
    order_check_p double,
    permutation_group text,
    n_orders integer,
    n_tokens bigint,
    plan text,
    verdict text not null,
    reason text,
    summary text,
    needed_effect double,
    primary key (model, benchmark, method),
    check (p_value > 0 and p_value <= 1),
    check (verdict in (
        'order_memorised', 'no_evidence', 'order_not_exchangeable', 'numerically_fragile', 'inconclusive', 'comparison'
    ))
);
comment on table contamination.tests is 'the verdict for a model and benchmark';
comment on column contamination.tests.model is 'the model, as users write it';
comment on column contamination.tests.benchmark is 'name';
comment on column contamination.tests.method is 'statistic used; the rows of named statistics beside the verdict are for comparison';
comment on column contamination.tests.is_verdict is 'whether this row is the verdict, fixed in advance, or a comparison';
comment on column contamination.tests.statistic is 'its value';
comment on column contamination.tests.p_value is 'exact p-value, valid at any stop; NULL below the smallest double, where ln_p tells';
comment on column contamination.tests.ln_p is 'natural logarithm of the p-value';
comment on column contamination.tests.n_shards is 'shards tested';
comment on column contamination.tests.n_permutations is 'shuffled orders a shard';
comment on column contamination.tests.resolution is 'smallest p that the design can reach; NULL below the smallest double';
comment on column contamination.tests.at_floor is 'whether p is the smallest that the orders scored until the stop could give: it then speaks of their number, not of a strength';
comment on column contamination.tests.stopped_early is 'whether a look ended it before the last';
comment on column contamination.tests.alpha is 'level of the verdict';
comment on column contamination.tests.q_value is 'Benjamini-Hochberg over models and benchmarks, verdicts behind a passed order check only';
comment on column contamination.tests.order_check_p is 'p-value of the order check on the same permutation group';
comment on column contamination.tests.permutation_group is 'all, or window:w';
comment on column contamination.tests.n_orders is 'orderings scored';
comment on column contamination.tests.n_tokens is 'tokens scored';
comment on column contamination.tests.plan is 'the budget as logged before anything was spent, without the time, which differs from run to run';
comment on column contamination.tests.verdict is 'order_memorised, no_evidence, order_not_exchangeable, numerically_fragile, inconclusive; comparison';
comment on column contamination.tests.reason is 'one plain sentence';
comment on column contamination.tests.summary is 'the summary as printed, with what it cannot show';
comment on column contamination.tests.needed_effect is 'total effect that the last look finds in 80 % of tests, first order: standard deviations between shuffled orders, summed over shards and divided by the root of their number; NULL where it can find none';
