-- Dated software releases and the questions made from them.

create schema if not exists releases;

create table releases.sources (
    ecosystem text not null,
    package text not null,
    project text not null,
    salience_rank integer,
    fetched_at timestamp,
    etag text,
    status text not null,
    error text,
    n_releases integer,
    primary key (ecosystem, package),
    check (salience_rank > 0),
    check (n_releases >= 0)
);
comment on table releases.sources is 'a tracked package in a registry';
comment on column releases.sources.ecosystem is 'what kind of release this is: pypi, npm, nodejs, python, maven, app, runtime, scoop, ...';
comment on column releases.sources.package is 'normalised package name';
comment on column releases.sources.project is 'project name as questions use it';
comment on column releases.sources.salience_rank is '1 is the best known project';
comment on column releases.sources.fetched_at is 'UTC day of the last good fetch, at midnight; NULL for committed facts';
comment on column releases.sources.etag is 'validator of the last reply';
comment on column releases.sources.status is 'ok, incomplete, tags_only, undated (no upload times), facts_only (never asked), mirror_dates (dates not believed), or unreachable, failed, missing, shrunken';
comment on column releases.sources.error is 'what went wrong at the last fetch';
comment on column releases.sources.n_releases is 'releases known';

create table releases.releases (
    ecosystem text not null,
    package text not null,
    version text not null,
    project text not null,
    released_on date,
    source text not null,
    url text,
    is_stable boolean not null,
    is_yanked boolean not null,
    flags text[],
    first_seen_at timestamp,
    withdrawn_at timestamp,
    uncertainty_days integer,
    label text,
    other_days text[],
    primary key (ecosystem, package, version),
    check (uncertainty_days >= 0),
    check (released_on >= date '1990-01-01')
);
comment on table releases.releases is 'a version of a project';
comment on column releases.releases.ecosystem is 'registry kind';
comment on column releases.releases.package is 'normalised package name';
comment on column releases.releases.version is 'version as the registry writes it';
comment on column releases.releases.project is 'project name as questions use it';
comment on column releases.releases.released_on is 'the day on which it could first be had, as `source` gives it; NULL where unknown';
comment on column releases.releases.source is 'where the date comes from';
comment on column releases.releases.url is 'page of the release, derived from the configured registry';
comment on column releases.releases.is_stable is 'neither pre-release nor draft';
comment on column releases.releases.is_yanked is 'withdrawn by its authors';
comment on column releases.releases.flags is 'reasons that keep it out of the probe';
comment on column releases.releases.first_seen_at is 'UTC instant at which it was first seen; NULL for committed facts';
comment on column releases.releases.withdrawn_at is 'UTC instant at which it was first found missing';
comment on column releases.releases.uncertainty_days is 'by how many days the date may be off';
comment on column releases.releases.other_days is 'the days that other sources give, each as "source day"; more than two days apart is no question';
comment on column releases.releases.label is 'name of a long-term support line, where the registry gives one';

create table releases.probe_items (
    dataset_version text not null,
    position integer not null,
    released_on date not null,
    project text not null,
    version text not null,
    decoy_version text,
    decoy_kind text,
    salience_rank integer,
    source text,
    url text,
    prompt text not null,
    primary key (dataset_version, project, version),
    check (position >= 0),
    check (decoy_version <> version),
    check (decoy_kind in ('patch_jump', 'near_miss')),
    check ((decoy_version is null) = (decoy_kind is null))
);
comment on table releases.probe_items is 'an askable pair of real and decoy version';
comment on column releases.probe_items.dataset_version is 'digest of the item set';
comment on column releases.probe_items.position is 'index of the day in the calendar, from 0';
comment on column releases.probe_items.released_on is 'the calendar day';
comment on column releases.probe_items.project is 'project name';
comment on column releases.probe_items.version is 'real version';
comment on column releases.probe_items.decoy_version is 'version that does not exist';
comment on column releases.probe_items.decoy_kind is 'patch_jump or near_miss';
comment on column releases.probe_items.salience_rank is '1 is the best known project';
comment on column releases.probe_items.source is 'where the date comes from';
comment on column releases.probe_items.url is 'page of the release';
comment on column releases.probe_items.prompt is 'the question as asked';
