-- Views over the releases.

-- A row is a decoy, in the calendar or asked of a model, that exists by now in some form: under another spelling, as a
-- pre-release, or as the beginning of a longer version. What is alike here is what `canonical` and `existing_forms` of
-- strandline/releases/versions.py take for alike; a test compares the two.
create or replace view releases.decoys_released_since as
with asked as (
    select project, decoy_version as version from releases.probe_items where decoy_version is not null
    union
    select project, version from probe.answers where kind = 'decoy'
),
numbered as (
    select project, version, null as released_on, null as first_seen_at, true as is_decoy from asked
    union all
    select project, version, released_on, first_seen_at, false from releases.releases
),
spelled as (
    -- the numbers that a version begins with, as they are written
    select *, regexp_extract(version, '^\s*[vV]?(\d{1,20}(?:\.\d{1,20})*)(?:\D(?:.|\n)*)?$', 1) as digits from numbered
),
split as (
    -- the same as a list, without zeros before them
    select
        * exclude (digits),
        [coalesce(nullif(ltrim(number, '0'), ''), '0') for number in string_split(digits, '.')] as numbers
    from spelled
    where digits <> ''
),
formed as (
    -- a version takes the shorter ones that begin it, down to two numbers; final zeros count for nothing
    select
        * exclude (numbers),
        unnest([
            regexp_replace(array_to_string(numbers[1:length], '.'), '(\.0)+$', '')
            for length in range(case when is_decoy then len(numbers) else least(2, len(numbers)) end, len(numbers) + 1)
        ]) as form
    from split
)
select
    decoys.project,
    decoys.version as decoy_version,
    min(existing.released_on) as released_on,
    min(existing.first_seen_at) as first_seen_at,
    any_value(existing.version order by existing.version) as existing_version
from formed as decoys
join formed as existing
    on existing.project = decoys.project
    and existing.form = decoys.form
    and not existing.is_decoy
where decoys.is_decoy
group by decoys.project, decoys.version;

-- A row is a project: how many of its releases are known and askable, and how far they reach.
create or replace view releases.projects as
select
    project,
    min(sources.salience_rank) as salience_rank,
    count(releases.version) as n_releases,
    count(*) filter (releases.is_stable) as n_stable,
    count(*) filter (len(releases.flags) = 0 and releases.withdrawn_at is null) as n_askable,
    min(releases.released_on) as first_released_on,
    max(releases.released_on) filter (not list_contains(releases.flags, 'future')) as last_released_on,
    max(sources.fetched_at) as fetched_at,
    any_value(sources.status) as status
from releases.sources
left join releases.releases using (ecosystem, package, project)
group by project;

-- A row is a day of the calendar that a probe asks about.
create or replace view releases.calendar as
select
    dataset_version,
    position,
    released_on,
    count(*) as n_items,
    count(distinct project) as n_projects,
    count(*) filter (decoy_kind = 'near_miss') as n_near_misses,
    count(*) filter (decoy_kind = 'patch_jump') as n_patch_jumps,
    min(salience_rank) as best_salience_rank
from releases.probe_items
group by dataset_version, position, released_on;
