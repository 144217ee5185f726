-- A run that goes on with other members holds something else from then on: that is another row, which is part of it.
ALTER TABLE runs ADD COLUMN part_of INTEGER;
