-- What people ask of scores, curves and cutoffs.

-- A row is a version of a document (any status) with its score under the model, NULL where there is none. Within a
-- resource all scores are made in one way: in one number format, under one set of weights and one version of the scoring
-- code, that of most of its texts, and none of them is cut by a shorter context than others. Texts of which the same
-- tokens were scored have the same score to the last bit, whichever batch they were computed in.
create or replace macro perplexity.versions_of(model_name) as table
with scored as (
    select
        *,
        coalesce(weights_digest, '') || ' ' || scorer_version as made_by,
        max(n_tokens) over (partition by max_tokens, dtype, weights_digest, scorer_version) as longest
    from perplexity.scores
    where model = model_name and status = 'ok'
),
held as (
    select
        text_sha256,
        max_tokens,
        dtype,
        made_by,
        token_digest,
        n_tokens,
        is_context_limited,
        first_value(mean_nll) over (
            partition by max_tokens, dtype, made_by, coalesce(token_digest, text_sha256) order by text_sha256
        ) as mean_nll
    from scored
    where not coalesce(is_context_limited, false) or n_tokens = longest
),
documents as (
    select
        revisions.resource,
        resources.kind,
        resources.max_tokens,
        revisions.topic,
        revisions.month,
        revisions.text_sha256
    from spans.revisions
    join spans.resources using (resource)
),
formats as (
    select resource, dtype, made_by
    from (select distinct resource, text_sha256, max_tokens from documents) as texts
    join held using (text_sha256, max_tokens)
    group by resource, dtype, made_by
    qualify row_number() over (partition by resource order by count(*) desc, dtype, made_by) = 1
)
select
    documents.resource,
    documents.kind,
    documents.topic,
    documents.month,
    documents.text_sha256,
    held.mean_nll,
    held.token_digest,
    documents.max_tokens,
    held.n_tokens,
    held.is_context_limited,
    held.dtype
from documents
left join formats using (resource)
left join held
    on held.text_sha256 = documents.text_sha256
    and held.max_tokens = documents.max_tokens
    and held.dtype = formats.dtype
    and held.made_by = formats.made_by;

-- That fewer tokens of each text were scored than asked for, as people read it; NULL where they were not.
create or replace macro perplexity.tokens_note(max_tokens, context_tokens) as
    case when context_tokens < max_tokens then 'only the first ' || context_tokens || ' of ' || max_tokens
        || ' tokens were scored: the model''s context ends there' end;

-- A row is a model and a resource: the reported effective cutoff beside what is advertised, with a warning where the
-- resource is older than every valid claim even at the upper end of its 95 % interval.
create or replace view perplexity.advertised_and_effective as
with advertised as (
    select model, declared_from as advertised_from, declared_to as advertised_to, n_claims
    from models.declared
    where kind = 'reported' and n_claims > 0
),
reported as (
    select * from perplexity.effective_cutoffs where is_default
),
compared as (
    select
        reported.*,
        advertised.advertised_from,
        advertised.advertised_to,
        coalesce(advertised.n_claims, 0) as n_claims,
        date_diff('month', reported.month, advertised.advertised_from) as months_older,
        coalesce(reported.status = 'found' and reported.high95 < advertised.advertised_from, false) as is_older
    from reported
    left join advertised using (model)
)
select
    model,
    resource,
    status,
    month as effective_month,
    low95,
    high95,
    advertised_from,
    advertised_to,
    n_claims,
    months_older,
    is_older,
    case
        when is_older then model || ' is advertised with knowledge up to ' || strftime(advertised_from, '%Y-%m')
            || ', but of ' || resource || ' it knows the state of about ' || strftime(month, '%Y-%m')
            || ' (95 % interval ' || strftime(low95, '%Y-%m') || ' to ' || strftime(high95, '%Y-%m') || '): '
            || months_older || ' months older'
    end as warning,
    estimator,
    reference,
    reason,
    perplexity.tokens_note(max_tokens, context_tokens) as tokens_note
from compared;

-- A row is a warning for users of a model: a resource is known in an older state than advertised.
create or replace view perplexity.warnings as
select model, resource, warning, months_older
from perplexity.advertised_and_effective
where is_older
order by months_older desc, model, resource;

-- A row is a model: is its cutoff the same for all resources? Answered only from resources that were dated.
create or replace view perplexity.cutoff_agreement as
with dated as (
    select
        model,
        count(*) as n_resources,
        count(*) filter (status = 'found') as n_found,
        min(month) as earliest_month,
        max(month) as latest_month,
        max(low95) filter (status = 'found') as latest_low95,
        min(high95) filter (status = 'found') as earliest_high95
    from perplexity.effective_cutoffs
    where is_default
    group by model
)
select
    model,
    n_resources,
    n_found,
    earliest_month,
    latest_month,
    case
        when n_found < 2 then 'unknown: ' || n_found || ' of ' || n_resources || ' resources could be dated'
        when latest_low95 > earliest_high95
            then 'no: resources end at different times, from ' || strftime(earliest_month, '%Y-%m')
            || ' to ' || strftime(latest_month, '%Y-%m')
        else 'not told apart: one month lies in the 95 % intervals of all ' || n_found || ' dated resources'
    end as is_cutoff_the_same
from dated;

-- A row is a topic that was dated on its own, beside its resource.
create or replace view perplexity.dated_topics as
select
    topics.model,
    topics.resource,
    topics.topic,
    topics.month,
    topics.low95,
    topics.high95,
    topics.q_value,
    whole.month as resource_month,
    whole.status as resource_status
from perplexity.topic_cutoffs as topics
left join perplexity.effective_cutoffs as whole
    on whole.model = topics.model and whole.resource = topics.resource and whole.is_default
where topics.status = 'found';

-- A row is a model with the corpora behind it, found by its own name, else by its family (a model whose name says that
-- its training was deduplicated belongs to the deduplicated suite). Data that are not public are told apart.
create or replace view perplexity.model_lineages as
with suites as (
    select
        model as suite,
        family,
        bool_or(corpus = 'C4') as has_c4,
        bool_or(corpus = 'RefinedWeb') as has_refinedweb,
        bool_or(corpus like 'Pile%') as has_pile,
        not bool_and(is_verified) as is_closed,
        list(corpus order by corpus) as corpora
    from models.training_corpora
    group by model, family
),
matched as (
    select
        models.model,
        models.name,
        models.family,
        models.n_params,
        models.model ilike '%dedup%' as is_deduplicated,
        suites.* exclude (family),
        row_number() over (
            partition by models.model
            order by
                lower(suites.suite) in (lower(models.model), lower(models.name)) desc,
                (suites.suite ilike '%dedup%') = (models.model ilike '%dedup%') desc,
                lower(suites.suite) = lower(models.family) desc,
                suites.suite
        ) as place
    from models.models as models
    left join suites
        on lower(suites.suite) in (lower(models.model), lower(models.name), lower(models.family))
        or lower(suites.family) = lower(models.family)
)
select
    model,
    name,
    family,
    n_params,
    is_deduplicated,
    suite,
    corpora,
    coalesce(is_closed, false) as is_closed,
    case
        when is_closed then 'training data not public'
        when has_c4 then 'C4 and crawls'
        when has_refinedweb then 'RefinedWeb'
        when has_pile then 'Pile'
        else 'training mix not recorded'
    end as lineage
from matched
where place = 1;

-- A row is a point of a curve with what the exhibits need to place and colour it, and the cutoff that was found.
create or replace view perplexity.curve_points as
select
    curves.model,
    curves.resource,
    resources.kind,
    curves.month,
    curves.relative_perplexity,
    curves.low95,
    curves.high95,
    lineages.family,
    lineages.n_params,
    coalesce(lineages.is_deduplicated, false) as is_deduplicated,
    coalesce(lineages.is_closed, false) as is_closed,
    coalesce(lineages.lineage, 'training mix not recorded') as lineage,
    lineages.corpora,
    cutoffs.month as found_month,
    perplexity.tokens_note(curves.max_tokens, curves.context_tokens) as tokens_note
from perplexity.monthly_curves as curves
join spans.resources as resources using (resource)
left join perplexity.model_lineages as lineages using (model)
left join perplexity.effective_cutoffs as cutoffs
    on cutoffs.model = curves.model and cutoffs.resource = curves.resource and cutoffs.is_default
where curves.status is distinct from 'missing';

comment on view perplexity.advertised_and_effective is 'the reported effective cutoff of each model and resource beside what is advertised, with a warning where it is older';
comment on view perplexity.warnings is 'resources that a model knows in an older state than advertised';
comment on view perplexity.cutoff_agreement is 'whether the cutoff of a model is the same for all its dated resources';
comment on view perplexity.dated_topics is 'topics that were dated on their own, beside their resource';
comment on view perplexity.model_lineages is 'models with the corpora behind them';
comment on view perplexity.curve_points is 'points of all curves with what the exhibits need';
