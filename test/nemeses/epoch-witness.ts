/**
 * Proves from within the database that no owner of a shard wrote after the claim of the next one, whatever the servers believe.
 *
 * Triggers note the transaction of each claim, and the last transaction that wrote under each epoch:
 *
 *   witness.claimed   shard, epoch, the transaction that began the epoch
 *   witness.written   shard, epoch, the last transaction that wrote to a table of the shard under this epoch
 *
 * A writer's connection claims its shard once, and a variable of its session keeps the epoch. The database knows when each
 * transaction was committed (`track_commit_timestamp`), which a trigger cannot know. The tables are replicated with
 * everything else, so what a failover loses is missing in them, too.
 *
 * The cost is a write for each group. A row for each epoch keeps the tables small in a run of hours.
 */
import type { Postgres } from '../support/server/postgres.ts'

/** Lines of postgresql.conf that the witness needs. */
export const witnessSettings = { track_commit_timestamp: 'on' }

const triggers = `
CREATE SCHEMA witness
CREATE TABLE claimed (shard int, epoch bigint, xid xid8 NOT NULL, PRIMARY KEY (shard, epoch))
CREATE TABLE written (shard int, epoch bigint, xid xid8 NOT NULL, PRIMARY KEY (shard, epoch)) WITH (fillfactor = 50);

CREATE FUNCTION witness.note_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO witness.claimed VALUES (NEW.shard, NEW.epoch, pg_current_xact_id());
  PERFORM set_config('witness.epoch_' || NEW.shard, NEW.epoch::text, false);
  RETURN NULL;
END $$;
CREATE TRIGGER note_claim AFTER UPDATE ON shard FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch)
  EXECUTE FUNCTION witness.note_claim();

-- A connection that has claimed nothing writes under epoch 0, which the first claim ends.
CREATE FUNCTION witness.note_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO witness.written AS w VALUES (TG_ARGV[0]::int,
    coalesce(current_setting('witness.epoch_' || TG_ARGV[0], true), '0')::bigint, pg_current_xact_id())
  ON CONFLICT (shard, epoch) DO UPDATE SET xid = excluded.xid WHERE w.xid <> excluded.xid;
  RETURN NULL;
END $$;
DO $$ DECLARE part record; BEGIN
  FOR part IN SELECT shard, kind || '_' || shard AS name FROM shard, unnest('{u,s,r}'::text[]) kind LOOP
    EXECUTE format('CREATE TRIGGER note_write AFTER INSERT OR UPDATE OR DELETE ON %I
      FOR EACH ROW EXECUTE FUNCTION witness.note_write(%s)', part.name, part.shard);
  END LOOP;
END $$`

/** A claim waits for the end of the last write, so it is committed later. A time that is not known proves nothing. */
const staleEpochs = `SELECT shard, w.epoch FROM witness.written w JOIN witness.claimed c USING (shard)
WHERE c.epoch = w.epoch + 1
AND (pg_xact_commit_timestamp(w.xid::xid) <= pg_xact_commit_timestamp(c.xid::xid)) IS NOT TRUE
ORDER BY shard, epoch`

/** Watches a database with the tables of a cluster from now on, on whatever server it is later. */
export async function startWitness(server: Postgres, database?: string): Promise<void> {
  await server.query(triggers, database)
}

/** Returns the epochs that were written under after the next claim of their shard, as `shard 3, epoch 7`. */
export async function staleWrites(server: Postgres, database?: string): Promise<readonly string[]> {
  const rows = await server.query(staleEpochs, database)
  return rows.map(({ shard, epoch }) => `shard ${String(shard)}, epoch ${String(epoch)}`)
}

/** Returns how many epochs were written under, so that a check that saw nothing is noticed. */
export async function watchedEpochs(server: Postgres, database?: string): Promise<number> {
  const [row] = await server.query('SELECT count(*) FROM witness.written', database)
  return Number(row?.['count'])
}
