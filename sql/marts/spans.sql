-- What people ask of versioned documents. Every view is over spans.revisions, one row a document and month.

-- A row is a document as it stood in a month, with its text.
create or replace view spans.documents as
select r.resource, r.topic, r.month, r.revision, r.revised_at, r.n_chars, r.url, t.text
from spans.revisions as r
join spans.texts as t using (text_sha256)
order by r.resource, r.topic, r.month;

-- A row is a month of a resource: how many documents it has, and what stands in the way of the others.
create or replace view spans.coverage as
with counted as (
    select resource, month, status, count(*) as n
    from spans.revisions
    group by all
)
select
    m.resource,
    m.month,
    m.status,
    m.reason,
    m.n_documents,
    m.n_ok,
    map_from_entries(list((c.status, c.n) order by c.status) filter (c.status <> 'ok')) as without_text
from spans.months as m
left join counted as c using (resource, month)
group by all
order by m.resource, m.month;

-- A row is a topic of a panel: over how many months it has a text, and how often that text changed.
create or replace view spans.topics as
with stepped as (
    select
        r.*,
        lag(r.text_sha256) over (partition by r.resource, r.topic order by r.month) as text_before
    from spans.revisions as r
    join spans.resources as s on s.resource = r.resource and s.kind = 'panel'
    where r.status = 'ok'
)
select
    resource,
    topic,
    count(*) as n_months,
    count(distinct text_sha256) as n_texts,
    count(*) filter (text_before is distinct from text_sha256 and text_before is not null) as n_changes,
    min(month) as first_month,
    max(month) as last_month,
    count(*) = max(m.n_months_asked) as is_complete
from stepped
join (select resource, count(*) as n_months_asked from spans.months group by resource) as m using (resource)
group by resource, topic
order by resource, topic;

-- A row is a version that cannot be right: its text is not stored, or it is younger than the instant of its month.
create or replace view spans.contradictions as
select r.resource, r.topic, r.month, r.revision, 'its text is not in spans.texts' as what
from spans.revisions as r
left join spans.texts as t using (text_sha256)
where r.text_sha256 is not null and t.text_sha256 is null
union all
select r.resource, r.topic, r.month, r.revision, 'its revision is younger than the month''s instant'
from spans.revisions as r
join spans.resources as s using (resource)
where s.kind = 'panel' and r.revised_at > r.month + to_days(s.snapshot_day - 1);
