-- Versioned documents.

create schema if not exists spans;

create table spans.resources (
    resource text not null,
    kind text not null,
    source text,
    max_tokens integer not null,
    description text,
    snapshot_day integer,
    first_month date,
    last_month date,
    n_topics integer,
    settings_sha256 text,
    primary key (resource),
    check (kind in ('panel', 'unpaired')),
    check (max_tokens > 1),
    check (snapshot_day between 1 and 28),
    check (last_month >= first_month)
);
comment on table spans.resources is 'a versioned resource';
comment on column spans.resources.resource is 'name of the resource';
comment on column spans.resources.kind is 'panel (same documents every month) or unpaired';
comment on column spans.resources.source is 'which kind of source it comes from, as the settings name it';
comment on column spans.resources.max_tokens is 'tokens scored of each document';
comment on column spans.resources.description is 'what it is';
comment on column spans.resources.snapshot_day is 'day of the month, at 00:00 UTC, whose state a month label stands for';
comment on column spans.resources.first_month is 'first month asked for';
comment on column spans.resources.last_month is 'last month asked for';
comment on column spans.resources.n_topics is 'documents asked for; NULL where the source finds them itself';
comment on column spans.resources.settings_sha256 is 'digest of the settings that decide which texts a month holds';

create table spans.months (
    resource text not null,
    month date not null,
    status text not null,
    reason text,
    n_documents integer not null,
    n_ok integer not null,
    settings_sha256 text,
    fetched_at timestamp,
    note text,
    primary key (resource, month),
    check (status in ('ok', 'short', 'failed', 'deferred')),
    check (n_ok between 0 and n_documents)
);
comment on table spans.months is 'a month of a resource: whether it is complete';
comment on column spans.months.resource is 'name of the resource';
comment on column spans.months.month is 'first day of the month';
comment on column spans.months.status is 'ok; short of the documents asked for; failed or deferred, to be fetched again';
comment on column spans.months.reason is 'one plain sentence when the status is not ok';
comment on column spans.months.n_documents is 'documents known of, with or without a text';
comment on column spans.months.n_ok is 'documents with a text';
comment on column spans.months.settings_sha256 is 'digest of the settings under which the month was completed';
comment on column spans.months.fetched_at is 'UTC instant at which the month was last fetched';
comment on column spans.months.note is 'what was read for this month and belongs to none: how much, and the first with its place and reason';

create table spans.revisions (
    resource text not null,
    topic text not null,
    month date not null,
    revision text,
    revised_at timestamp,
    status text not null,
    reason text,
    text_sha256 text,
    n_chars integer,
    url text,
    document text,
    content_id text,
    cleaned_by text,
    settings_sha256 text,
    replaced_share double,
    primary key (resource, topic, month),
    check ((status = 'ok') = (text_sha256 is not null)),
    check (status = 'ok' or reason is not null)
);
comment on table spans.revisions is 'a document as it stood in a month';
comment on column spans.revisions.resource is 'name of the resource';
comment on column spans.revisions.topic is 'document; for unpaired resources the article';
comment on column spans.revisions.month is 'first day of the month';
comment on column spans.revisions.revision is 'revision id, version or commit in force';
comment on column spans.revisions.revised_at is 'UTC instant of that revision';
comment on column spans.revisions.status is 'ok, or a word for what stands in the way: missing, invalid, duplicate, redirect, blank, hidden, suppressed, not_created, deleted, unsupported, unparsed, unreadable, no_text, binary, pointer, empty, too_short, undated, misdated, truncated, revisit, garbled, near_duplicate, not_sampled, failed, deferred';
comment on column spans.revisions.reason is 'one plain sentence when the status is not ok';
comment on column spans.revisions.text_sha256 is 'the text, in spans.texts';
comment on column spans.revisions.n_chars is 'characters of the text';
comment on column spans.revisions.url is 'where the document can be read';
comment on column spans.revisions.document is 'what the source called the document then: page id, path or address';
comment on column spans.revisions.content_id is 'the source''s own name of the content: sha1, blob or file name';
comment on column spans.revisions.cleaned_by is 'name and version of the cleaning that made the text';
comment on column spans.revisions.settings_sha256 is 'digest of the settings, but for the list of topics, under which it was found';
comment on column spans.revisions.replaced_share is 'news pages and files in git: share of characters that could not be read and were replaced';

create table spans.texts (
    text_sha256 text not null,
    text text not null,
    primary key (text_sha256)
);
comment on table spans.texts is 'a distinct text';
comment on column spans.texts.text_sha256 is 'sha256 of the UTF-8 text';
comment on column spans.texts.text is 'the text';
