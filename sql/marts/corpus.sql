-- Views over what training corpora hold.

-- A row is a resource in a corpus: how many copies of it there are, and between which months their versions lie.
create or replace view corpus.copies_of_my_resource as
with searched as (
    select resource, count(distinct topic) as n_topics
    from spans.revisions
    where status = 'ok' and text_sha256 is not null
    group by resource
)
select
    corpus,
    resource,
    coalesce(sum(weight), 0) as n_copies,
    count(distinct topic) filter (weight > 0) as n_topics_with_copies,
    any_value(searched.n_topics) as n_topics_searched,
    coalesce(sum(weight) filter (edits = 0), 0) as n_exact_copies,
    min(list_min(months)) filter (weight > 0) as oldest_version,
    max(list_max(months)) filter (weight > 0) as newest_version
from corpus.matches
left join searched using (resource)
group by corpus, resource;

-- A row is a topic and month of which a corpus holds a version: how many copies, ties shared.
create or replace view corpus.versions_of_my_resource as
with shared as (
    select corpus, resource, topic, unnest(months) as month, weight / n_months as share
    from corpus.matches
    where weight > 0
)
select corpus, resource, topic, month, sum(share) as n_copies
from shared
group by corpus, resource, topic, month;

-- A row is a resource in a corpus: how much of what was found is older than the month that is reported for it.
create or replace view corpus.older_than_reported as
select
    counts.corpus,
    counts.resource,
    explanations.reported_month,
    sum(counts.weight) as n_copies,
    sum(counts.weight) filter (counts.month < explanations.reported_month) as n_older,
    sum(counts.weight) filter (counts.month < explanations.reported_month)
        / nullif(sum(counts.weight), 0) as older_share
from corpus.version_counts as counts
join corpus.explanations as explanations
    on explanations.corpus = counts.corpus
    and explanations.resource = counts.resource
    and explanations.model = 'none'
where counts.method = 'edit_distance'
group by counts.corpus, counts.resource, explanations.reported_month;

-- A row is a shard that could not be read whole: what was lost, and where it is listed.
create or replace view corpus.damaged_shards as
select
    broken.corpus,
    broken.location,
    count(*) as n_broken,
    mode(broken.kind) as commonest_kind,
    min(broken.position) as first_position
from corpus.broken_records as broken
group by broken.corpus, broken.location;

-- A row is a deduplication rule and class of duplicates that it leaves: the rules that fail most, first.
create or replace view corpus.rules_that_miss as
select corpus, rule, is_stated, class, n_missed, n_pairs, n_missed / n_pairs as missed_share, escaped_left, escaped_right
from corpus.dedup_audit
where n_missed > 0
order by corpus, missed_share desc, rule, class;

-- A row is a corpus whose versions are known: how many documents were dated to the months of their version.
create or replace view corpus.known_truth as
select
    corpus,
    resource,
    count(*) filter (outcome = 'right') as n_right,
    count(*) filter (outcome in ('right', 'wrong', 'unmatched')) as n_judged,
    count(*) filter (outcome = 'outside') as n_outside,
    count(*) filter (outcome = 'right')
        / nullif(count(*) filter (outcome in ('right', 'wrong', 'unmatched')), 0) as right_share
from corpus.truth_checks
group by corpus, resource;

comment on view corpus.copies_of_my_resource is 'how many copies of a resource a corpus holds, and between which months their versions lie';
comment on view corpus.versions_of_my_resource is 'of which topics and months a corpus holds versions, and how many copies, ties shared';
comment on view corpus.older_than_reported is 'how much of what was found of a resource is older than the month that is reported for it';
comment on view corpus.damaged_shards is 'shards that could not be read whole';
comment on view corpus.rules_that_miss is 'deduplication rules and the classes of duplicates that they leave';
comment on view corpus.known_truth is 'of documents whose version is known, how many were dated to its months';
