-- Numbers of gangs and runs are never given twice, also not those of the deleted: a run's number is the name of its
-- directory, and what is left in one must not be taken for another's.
CREATE TABLE gangs_2 (
  uid       INTEGER PRIMARY KEY AUTOINCREMENT,
  name      TEXT NOT NULL,
  world     INTEGER,
  record    TEXT NOT NULL,
  submitted INTEGER NOT NULL,
  over      INTEGER,
  status    TEXT NOT NULL
) STRICT;
INSERT INTO gangs_2 SELECT uid, name, world, record, submitted, over, status FROM gangs;

-- Runs are the accounts: they outlive their gang, and know its name by themselves.
CREATE TABLE runs_2 (
  run     INTEGER PRIMARY KEY AUTOINCREMENT,
  gang    INTEGER NOT NULL,
  name    TEXT NOT NULL,
  queue   TEXT NOT NULL,
  user    TEXT NOT NULL,
  members INTEGER NOT NULL,
  gpus    INTEGER NOT NULL,
  cpus    INTEGER NOT NULL,
  hourly  INTEGER NOT NULL,
  waited  INTEGER NOT NULL,
  decided INTEGER NOT NULL,
  started INTEGER,
  ended   INTEGER,
  ending  TEXT
) STRICT;
INSERT INTO runs_2
  SELECT run, gang, gangs.name, queue, user, members, gpus, cpus, hourly, waited, decided, started, ended, ending
  FROM runs JOIN gangs ON gangs.uid = runs.gang;

CREATE TABLE members_2 (
  run     INTEGER NOT NULL,
  rank    INTEGER NOT NULL,
  role    TEXT NOT NULL,
  node    TEXT NOT NULL,
  ended   INTEGER,
  code    INTEGER,
  signal  INTEGER,
  PRIMARY KEY (run, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO members_2 SELECT run, rank, role, node, ended, code, signal FROM members;

DROP TABLE members;
DROP TABLE runs;
DROP TABLE gangs;
ALTER TABLE gangs_2 RENAME TO gangs;
ALTER TABLE runs_2 RENAME TO runs;
ALTER TABLE members_2 RENAME TO members;
CREATE UNIQUE INDEX gangs_here ON gangs (name) WHERE over IS NULL;
CREATE INDEX gangs_by_name ON gangs (name, uid);
CREATE INDEX gangs_over ON gangs (over) WHERE over IS NOT NULL;
CREATE INDEX runs_by_gang ON runs (gang);
CREATE INDEX runs_open ON runs (run) WHERE ended IS NULL;
CREATE INDEX runs_by_start ON runs (started);
