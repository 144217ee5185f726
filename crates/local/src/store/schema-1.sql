-- What the World was told, in order. Read again from the first line, it is the World.
CREATE TABLE log (
  seq   INTEGER PRIMARY KEY,
  at    INTEGER NOT NULL,
  event TEXT NOT NULL
) STRICT;

-- Everything that was ever submitted.
CREATE TABLE gangs (
  uid       INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,
  world     INTEGER,              -- its number in the World, while it has one
  record    TEXT NOT NULL,        -- as submitted, and what to run
  submitted INTEGER NOT NULL,
  over      INTEGER,              -- when it was
  status    TEXT NOT NULL         -- as last shown
) STRICT;
CREATE UNIQUE INDEX gangs_here ON gangs (name) WHERE over IS NULL;
CREATE INDEX gangs_by_name ON gangs (name, uid);

-- Queues, pools, nodes and the topology, as written.
CREATE TABLE objects (
  kind   TEXT NOT NULL,
  name   TEXT NOT NULL,
  object TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Every time a gang was started: what it held, from when to when, and what that cost an hour in millionths.
CREATE TABLE runs (
  run     INTEGER PRIMARY KEY,
  gang    INTEGER NOT NULL REFERENCES gangs (uid),
  queue   TEXT NOT NULL,
  user    TEXT NOT NULL,
  members INTEGER NOT NULL,
  gpus    INTEGER NOT NULL,       -- thousandths
  cpus    INTEGER NOT NULL,       -- thousandths
  hourly  INTEGER NOT NULL,
  waited  INTEGER NOT NULL,       -- milliseconds, before this run
  decided INTEGER NOT NULL,
  started INTEGER,
  ended   INTEGER,
  ending  TEXT
) STRICT;
CREATE INDEX runs_by_gang ON runs (gang);
CREATE INDEX runs_open ON runs (run) WHERE ended IS NULL;

-- Every process that was.
CREATE TABLE members (
  run     INTEGER NOT NULL REFERENCES runs (run),
  rank    INTEGER NOT NULL,
  role    TEXT NOT NULL,
  node    TEXT NOT NULL,
  ended   INTEGER,
  code    INTEGER,
  signal  INTEGER,
  PRIMARY KEY (run, rank)
) STRICT, WITHOUT ROWID;

-- Simulated machines: what was to become of each, drawn when it was asked for.
CREATE TABLE machines (
  claim    INTEGER PRIMARY KEY,
  pool     INTEGER NOT NULL,
  slot     INTEGER NOT NULL,
  asked    INTEGER NOT NULL,
  life     TEXT NOT NULL,
  stopped  INTEGER,
  leaves   INTEGER,               -- when it will be gone, once it was given back
  gone     INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Answers to requests that may be sent twice.
CREATE TABLE answers (
  caller  TEXT NOT NULL,
  key     TEXT NOT NULL,
  request BLOB NOT NULL,
  code    INTEGER NOT NULL,
  answer  TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
