-- Views over the contamination tests.

-- A row is the verdict for a model and benchmark.
create or replace view contamination.verdicts as
select
    model,
    benchmark,
    verdict,
    reason,
    p_value,
    ln_p / ln(10) as log10_p,
    q_value,
    alpha,
    resolution,
    at_floor,
    order_check_p,
    permutation_group,
    n_shards,
    n_permutations,
    stopped_early,
    method,
    n_orders,
    n_tokens,
    needed_effect
from contamination.tests
where is_verdict;

-- A row is a named statistic beside a verdict: what the literature would have said of the same orders.
create or replace view contamination.comparisons as
select
    named.model,
    named.benchmark,
    named.method,
    named.p_value,
    verdict.p_value as p_of_verdict,
    verdict.verdict
from contamination.tests as named
join contamination.tests as verdict
    on verdict.model = named.model and verdict.benchmark = named.benchmark and verdict.is_verdict
where not named.is_verdict;

-- A row is a benchmark whose published order tells itself apart without a model, and by what.
create or replace view contamination.unusable_orders as
select
    failed.benchmark,
    failed.permutation_group,
    failed.p_value,
    string_agg(telling.check_name, ', ' order by telling.p_value, telling.check_name) as telling_statistics
from contamination.order_checks as failed
left join contamination.order_checks as telling
    on telling.benchmark = failed.benchmark
    and telling.n_shards = failed.n_shards
    and telling.permutation_group = failed.permutation_group
    and telling.check_name not like '%combined'
    and telling.p_value <= 0.01
where failed.is_gate and failed.status = 'order_not_exchangeable'
group by all;

-- A row is a shard: how far its published order lies above its shuffled ones, the clearest first.
create or replace view contamination.telling_shards as
select
    tests.model,
    tests.benchmark,
    shards.shard,
    logliks.first_example,
    logliks.n_examples,
    shards.z_score,
    shards.p_value,
    tests.verdict
from contamination.shard_tests as shards
join contamination.tests as tests
    on tests.model = shards.model and tests.benchmark = shards.benchmark and tests.is_verdict
left join contamination.order_logliks as logliks
    on logliks.model = shards.model
    and logliks.benchmark = shards.benchmark
    and logliks.shard = shards.shard
    and logliks.permutation = 0
order by shards.z_score desc nulls last;

-- A row is the work behind a verdict.
create or replace view contamination.spending as
select
    model,
    benchmark,
    count(*) as n_orders,
    sum(n_tokens) as n_tokens,
    max(permutation) as n_permutations,
    count(*) filter (status <> 'ok') as n_not_finite,
    max(sentinel_difference) as largest_sentinel_difference
from contamination.order_logliks
group by model, benchmark;
