/**
 * What the doctor looks for in the tables of a cluster: tables that are missing, left over, or other than create-schema.ts
 * makes them; and rows that disagree, with the number of shards, with each other, or with what living nodes would have done
 * about them. What changes all the time is looked at twice, so that a take-over under way is no finding.
 */
import { listed } from '../../kit/finding.ts'
import { clockDifferenceMsMax } from '../../kit/limits.ts'
import { clockText } from '../membership/database-clock.ts'
import type { Look, LookRow, Looks } from './look.ts'
import { tableKinds } from './named-statement.ts'
import type { TableKind } from './pg-group.ts'
import { tableSettings } from './create-schema.ts'

const kindsOfShard = `unnest('{${tableKinds.join(',')}}'::text[]) WITH ORDINALITY AS kinds (kind, kind_nth)`

/** All names that a row of a table has, as one row; none if there is no such name. */
function namesOf(from: string, name: string, order = name): string {
  return `SELECT json_agg(${name} ORDER BY ${order}) AS names FROM ${from} HAVING count(*) > 0`
}

/** $1: the shards that this database should have. */
const ownShards = `own AS (SELECT shard, nth FROM unnest($1::int[]) WITH ORDINALITY AS own (shard, nth))`

const tablesGiven = `WITH ${ownShards},
wanted AS (SELECT 'node' AS name, '' AS kind, '{0,0}'::bigint[] AS place
  UNION ALL SELECT kind || '_' || shard, kind, ARRAY[kind_nth, nth] FROM own, ${kindsOfShard}),
present AS (SELECT oid, relname AS name, reloptions AS settings, relpersistence, relowner,
  CASE relname WHEN 'node' THEN 'name' WHEN 'shard' THEN 'shard' ELSE 'key' END AS key
  FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)
  AND (relname IN ('cluster', 'node', 'shard') OR relname ~ '^[usr]_(0|[1-9][0-9]{0,8})$')),
own_table AS (SELECT present.*, kind, place FROM wanted JOIN present USING (name))`

/** Deleted rows of a table without these settings take room and time. */
function otherSettings(kind: TableKind): Look {
  const expected = tableSettings[kind]
  const array = `'{${expected.join(',')}}'::text[]`
  return {
    sql: namesOf(
      `own_table WHERE kind = '${kind}' AND NOT coalesce(settings, '{}') @> ${array}`,
      'name',
      'place',
    ),
    level: 'warn',
    sentence: ({ names }) =>
      `${tables(names)} without a setting, so deleted rows take room and time: ALTER TABLE ${names[0]} SET (${expected.join(', ')})`,
  }
}

/** Without an index each statement reads the whole table, and an update or an owner can be there twice. */
const hasNoIndex = `NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
  WHERE i.indrelid = present.oid AND i.indisunique AND i.indisvalid AND i.indisready AND i.indimmediate
  AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = present.key)`
const isCompressed = `NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = own_table.oid
  AND attname = 'value' AND NOT attisdropped AND attstorage = 'e')`

/** Says whether the rest can be read at all. */
export const clusterLooks: Looks = {
  looks: [
    {
      sql: "SELECT '' AS found FROM cluster HAVING count(*) = 0",
      level: 'bad',
      sentence: () => 'the table cluster has no row: restore the database from a backup',
    },
  ],
}

/** Values: the shards that this database should have. */
export const tableLooks: Looks = {
  given: tablesGiven,
  looks: [
    {
      sql: 'SELECT count(*) AS found FROM cluster HAVING count(*) > 1',
      level: 'bad',
      sentence: ({ found }) =>
        `the table cluster has ${found} rows: stop all servers, and delete the wrong ones`,
    },
    {
      sql: namesOf('wanted WHERE name NOT IN (SELECT name FROM present)', 'name', 'place'),
      level: 'bad',
      sentence: ({ names }) =>
        `${tables(names)} missing: restore the database from a backup that has ${them(names)}`,
    },
    {
      // If a shard has a row, the row is what must be decided on first (rowLooks).
      sql: namesOf(
        `present WHERE name ~ '^._' AND name NOT IN (SELECT name FROM wanted)
AND substr(name, 3) NOT IN (SELECT shard::text FROM shard)`,
        'name',
      ),
      level: 'warn',
      sentence: ({ names }) =>
        `${tables(names)} left over from shards that this database does not have: drop ${them(names)} if nothing in ${them(names)} is needed`,
    },
    {
      sql: namesOf(`present WHERE NOT pg_has_role(relowner, 'USAGE')`, 'name'),
      level: 'bad',
      sentence: ({ names }) => `${tables(names)} owned by another role: connect as the owner`,
    },
    {
      sql: namesOf(`present WHERE relpersistence <> 'p'`, 'name'),
      level: 'bad',
      sentence: ({ names }) =>
        `${tables(names)} not logged, so a crash of the database or its failover empties ${them(names)}: ALTER TABLE ${names[0]} SET LOGGED`,
    },
    {
      sql: `SELECT name AS found, key AS other FROM present WHERE name <> 'cluster' AND ${hasNoIndex} ORDER BY name`,
      level: 'bad',
      sentence: ({ found, other }) =>
        `the table ${found} has no valid primary key: drop an invalid index, and ALTER TABLE ${found} ADD PRIMARY KEY (${other})`,
    },
    ...tableKinds.map(otherSettings),
    {
      sql: namesOf(`own_table WHERE kind = 'u' AND ${isCompressed}`, 'name', 'place'),
      level: 'warn',
      sentence: ({ names }) =>
        `${tables(names)} made to compress updates, which costs time: ALTER TABLE ${names[0]} ALTER value SET STORAGE EXTERNAL`,
    },
  ],
}

/** The shards whose row says that no server has ever opened them, each claim raises the epoch, and whose tables are all there. */
export const unclaimedShards = `SELECT DISTINCT shard FROM shard WHERE epoch <= 0
AND NOT EXISTS (SELECT FROM ${kindsOfShard} WHERE to_regclass(kind || '_' || shard) IS NULL)`

/** Values: the shards that this database should have; of the unclaimed ones, those with records. */
export const rowLooks: Looks = {
  given: `WITH ${ownShards}, filled AS (SELECT unnest($2::int[]) AS shard)`,
  looks: [
    {
      sql: namesOf('own WHERE shard NOT IN (SELECT shard FROM shard)', 'shard', 'nth'),
      level: 'bad',
      sentence: ({ names }) =>
        `the table shard has no row for ${shards(names)}: stop all servers, and restore the database, or insert the row (${names[0]}, 1, '', '') if the tables of the shard are there`,
    },
    {
      sql: namesOf(
        '(SELECT DISTINCT shard FROM shard WHERE shard NOT IN (SELECT shard FROM own)) others',
        'shard',
      ),
      level: 'bad',
      sentence: ({ names }) =>
        `the table shard has rows for ${shards(names)}, which this database does not have: undo the change of the row of cluster that makes them too many, or else delete them`,
    },
    {
      sql: namesOf('(SELECT shard FROM shard GROUP BY shard HAVING count(*) > 1) doubled', 'shard'),
      level: 'bad',
      sentence: ({ names }) =>
        `the table shard has several rows for ${shards(names)}: stop all servers, and keep only the one with the highest epoch`,
    },
    {
      sql: namesOf(
        "shard WHERE epoch <= 0 AND (boot <> '' OR shard IN (SELECT shard FROM filled))",
        'shard',
      ),
      level: 'bad',
      sentence: ({ names }) =>
        `the row of ${shards(names)} has no epoch although the shard was in use, so a former owner may write beside the present one: stop all servers, and start them again`,
    },
  ],
}

/**
 * The doctor reads the rows of nodes and shards twice, this long apart. Chosen: longer than a lost node keeps its row
 * (`nodeEvictedMs`) and than the second node in the rank of a shard waits for the first (`orphanTurnMs`).
 */
export const pgDoctorLookMs = 3_000
const apart = `in the ${pgDoctorLookMs / 1_000} s that the doctor looked`

/** Earlier versions made the table of nodes without the column `clock`. */
const nodesGiven = `WITH node_before AS (SELECT * FROM json_to_recordset($1::json -> 'nodes') AS b (boot text, beat text)),
shard_before AS (SELECT * FROM json_to_recordset($1::json -> 'shards') AS b (shard int, epoch text)),
standing AS (SELECT name, boot FROM node WHERE EXISTS
  (SELECT FROM node_before b WHERE b.boot = node.boot AND b.beat = node.beat::text)),
alive AS (SELECT *, (to_jsonb(node) -> 'clock' ->> 'skewMs')::float8 AS skew_ms
  FROM node WHERE boot NOT IN (SELECT boot FROM standing)),
serving AS (SELECT name FROM alive WHERE state = 'serving')`

/** Values: the rows `pgDoctorLookMs` ago (readRows). */
export const nodeLooks: Looks = {
  given: nodesGiven,
  looks: [
    {
      sql: 'SELECT name AS found FROM standing ORDER BY name',
      level: 'warn',
      sentence: ({ found }) =>
        `${nodeNamed(found)} has sent no heartbeat ${apart}: start it again, or another one, which removes its row`,
    },
    {
      sql: `SELECT skew_ms AS found, name AS other FROM alive WHERE abs(skew_ms) > ${clockDifferenceMsMax} ORDER BY name`,
      level: 'warn',
      sentence: ({ found, other }) =>
        `the clock of ${nodeNamed(other)} is ${clockText(Number(found))} of that of the database: let a time service set both, because receivers check the time of signed deliveries`,
    },
    {
      sql: `SELECT json_build_array(o.name, n.name) AS names, n.address AS found FROM alive n, LATERAL
(SELECT name FROM alive o WHERE o.address = n.address AND (o.name, o.boot) < (n.name, n.boot) ORDER BY o.name, o.boot LIMIT 1) o
WHERE n.address <> '' ORDER BY n.name`,
      level: 'bad',
      sentence: ({ names, found }) =>
        `${names.map(nodeNamed).join(' and ')} have the same address ${found}, so requests for one reach the other: give each an address of its own with --cluster-advertise or --cluster-listen`,
    },
    {
      // A node claims the shards of one that was lost at once, so none is without an owner for long.
      sql: `SELECT json_agg(shard ORDER BY shard) AS names, (SELECT json_agg(name ORDER BY name) FROM serving) AS others FROM shard
WHERE boot NOT IN (SELECT boot FROM node_before UNION SELECT boot FROM node) AND EXISTS (SELECT FROM serving)
AND EXISTS (SELECT FROM shard_before b WHERE b.shard = shard.shard AND b.epoch = shard.epoch::text) HAVING count(*) > 0`,
      level: 'bad',
      sentence: ({ names, others }) =>
        `no node has opened ${shards(names)} ${apart}, although ${listed(others)} should: look for errors in the logs of the nodes, and restart one after the other`,
    },
    {
      // Nodes compare their admin keys with the fingerprint of the last one that joined.
      sql: `SELECT '' AS found WHERE EXISTS (SELECT FROM node) AND NOT EXISTS (SELECT FROM cluster WHERE admin_key IS NOT NULL)`,
      level: 'warn',
      sentence: () =>
        'the row of cluster has no fingerprint of the admin key, so a node with another key would start: restart one of the nodes',
    },
  ],
}

function nodeNamed(name: LookRow['found']): string {
  return `the node ${JSON.stringify(name)}`
}

function shards(numbers: LookRow['names']): string {
  return `${numbers.length === 1 ? 'shard' : 'shards'} ${listed(numbers)}`
}

function tables(names: LookRow['names']): string {
  return names.length === 1 ? `the table ${names[0]} is` : `the tables ${listed(names)} are`
}

function them(names: LookRow['names']): string {
  return names.length === 1 ? 'it' : 'them'
}
