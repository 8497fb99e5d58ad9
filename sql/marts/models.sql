-- A row is a model with its declared cutoff: the earliest and latest valid claim, how many sources agree, and the
-- claims that cannot be true. Claims of different kinds (training data, reliable knowledge) are not mixed.
create or replace view models.declared as
with claims as (
    select *, case kind when 'training_data' then 'reported' else kind end as meaning
    from models.declared_cutoffs
),
judged as (
    select
        model,
        meaning as kind,
        min(value) filter (where is_valid) as declared_from,
        max(value_to) filter (where is_valid) as declared_to,
        count(*) filter (where is_valid) as n_claims,
        coalesce(bool_or(is_conflicting), false) as is_conflicting,
        count(*) filter (where value is not null and not is_valid) as n_impossible,
        string_agg(reason, '; ' order by source, kind) filter (where value is not null) as remarks
    from claims
    group by model, meaning
)
select
    judged.model,
    models.name,
    models.provider,
    judged.kind,
    judged.declared_from,
    judged.declared_to,
    judged.n_claims,
    judged.is_conflicting,
    judged.n_impossible,
    judged.remarks,
    models.released_on,
    models.is_open,
    date_diff('day', judged.declared_to, models.released_on) as days_to_release
from judged
join models.models as models using (model);
comment on view models.declared is 'what is declared about each model, with conflicts and impossible claims beside it';

-- A row is a model or suite with the newest dump that went into its training mix: the date that is advertised, not the
-- age of the texts.
create or replace view models.newest_dumps as
select
    model,
    family,
    max(dump_to) filter (where corpus_kind = 'encyclopaedia') as wikipedia_dump,
    max(dump_to) filter (where corpus_kind in ('crawl', 'collection')) as crawl_dump,
    bool_and(is_verified) as is_verified,
    string_agg(corpus, ', ' order by corpus) as corpora
from models.training_corpora
group by model, family;
comment on view models.newest_dumps is 'the newest Wikipedia and crawl dumps in each training mix';
