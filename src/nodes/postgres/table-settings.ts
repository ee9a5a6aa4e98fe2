/**
 * The settings of the tables of a shard, as `pg_class.reloptions` has them. `fillfactor` leaves room on the page for the
 * next version of a row that is overwritten all the time. Updates are deleted soon, in large numbers, so that their table is
 * vacuumed by a number of rows and not by its share of a size that changes all the time.
 */
import type { TableKind } from './pg-group.ts'

export const tableSettings: Readonly<Record<TableKind, readonly string[]>> = {
  u: [
    'autovacuum_vacuum_scale_factor=0',
    'autovacuum_vacuum_threshold=20000',
    'autovacuum_vacuum_cost_delay=0',
    'autovacuum_vacuum_insert_threshold=-1',
  ],
  s: ['fillfactor=50'],
  r: [],
}
