-- A row is a model's boundary by one estimator in its current run: the estimate, its intervals and the YES rates behind it.
create or replace view probe.current_boundaries as
with chosen as (
    select model, run_id, policy, ask, started_at
    from probe.runs
    qualify row_number() over (partition by model order by chosen_at desc, run_id) = 1
)
select
    boundaries.model,
    boundaries.estimator,
    boundaries.status,
    boundaries.label,
    boundaries.estimate_from,
    boundaries.estimate_to,
    boundaries.low95,
    boundaries.high95,
    date_diff('day', boundaries.low95, boundaries.high95) as width95_days,
    boundaries.real_yes / nullif(boundaries.real_total, 0) as real_yes_rate,
    boundaries.decoy_yes / nullif(boundaries.decoy_total, 0) as decoy_yes_rate,
    boundaries.questions,
    chosen.policy,
    chosen.ask,
    chosen.started_at,
    boundaries.dataset_version,
    boundaries.run_id,
    boundaries.reason
from probe.boundaries as boundaries
join chosen using (model, run_id);
comment on view probe.current_boundaries is 'the boundary of each model in its current run, by estimator';

-- A row is a day that a round asked about: how often real releases and decoys were answered YES, and the day's status.
create or replace view probe.transcript as
with tallies as (
    select
        model,
        run_id,
        replicate,
        round,
        position,
        released_on,
        count(*) filter (where kind = 'real' and answer = 'YES') as real_yes,
        count(*) filter (where kind = 'real' and answer is not null) as real_total,
        count(*) filter (where kind = 'decoy' and answer = 'YES') as decoy_yes,
        count(*) filter (where kind = 'decoy' and answer is not null) as decoy_total,
        count(*) filter (where answer is null) as missing,
        count(*) filter (where counted) as counted
    from probe.answers
    group by all
)
select
    *,
    case
        when decoy_yes > 0 then 'noisy'
        when real_total > 0 and 3 * real_yes >= 2 * real_total then 'known'
        when 3 * real_yes <= real_total then 'unknown'
        else 'mixed'
    end as status
from tallies;
comment on view probe.transcript is 'each day that a round asked about, with its counts and status';

-- A row is a quarter of a year in one run: the share of real releases answered YES, each question counted once.
create or replace view probe.quarterly_rates as
select
    model,
    run_id,
    date_trunc('quarter', released_on)::date as quarter,
    count(*) filter (where kind = 'real') as n_real,
    avg((answer = 'YES')::integer) filter (where kind = 'real') as real_yes_rate,
    count(*) filter (where kind = 'decoy') as n_decoys,
    avg((answer = 'YES')::integer) filter (where kind = 'decoy') as decoy_yes_rate,
    avg(p_yes) filter (where kind = 'real') as mean_p_yes
from probe.answers
where counted
group by all;
comment on view probe.quarterly_rates is 'YES rates of a run by quarter of release';

-- A row is a question that was put more than once in a run and was not answered the same each time.
create or replace view probe.unstable_answers as
select
    model,
    run_id,
    kind,
    project,
    version,
    count(*) as times_answered,
    list(answer order by replicate, round) as answers
from probe.answers
where answer is not null
group by model, run_id, kind, project, version
having count(distinct answer) > 1;
comment on view probe.unstable_answers is 'questions whose repeated answers differ, which at temperature 0 is the noise of the server';
