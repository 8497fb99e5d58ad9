-- Versioned documents.

create schema if not exists spans;

create table spans.resources (
    resource text not null,
    kind text not null,
    source text,
    max_tokens integer not null,
    description text,
    primary key (resource),
    check (kind in ('panel', 'unpaired')),
    check (max_tokens > 1)
);
comment on table spans.resources is 'a versioned resource';
comment on column spans.resources.resource is 'name of the resource';
comment on column spans.resources.kind is 'panel (same documents every month) or unpaired';
comment on column spans.resources.source is 'which source it comes from';
comment on column spans.resources.max_tokens is 'tokens scored of each document';
comment on column spans.resources.description is 'what it is';

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
    primary key (resource, topic, month)
);
comment on table spans.revisions is 'a document as it stood in a month';
comment on column spans.revisions.resource is 'name of the resource';
comment on column spans.revisions.topic is 'document; for unpaired resources the article';
comment on column spans.revisions.month is 'first day of the month';
comment on column spans.revisions.revision is 'revision id, version or commit in force';
comment on column spans.revisions.revised_at is 'UTC instant of that revision';
comment on column spans.revisions.status is 'ok, or a word for what stands in the way';
comment on column spans.revisions.reason is 'one plain sentence when the status is not ok';
comment on column spans.revisions.text_sha256 is 'the text, in spans.texts';
comment on column spans.revisions.n_chars is 'characters of the text';
comment on column spans.revisions.url is 'where the document can be read';

create table spans.texts (
    text_sha256 text not null,
    text text not null,
    primary key (text_sha256)
);
comment on table spans.texts is 'a distinct text';
comment on column spans.texts.text_sha256 is 'sha256 of the UTF-8 text';
comment on column spans.texts.text is 'the text';
