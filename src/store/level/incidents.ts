/**
 * The copies of damaged logs, one incident for each opening that found damage:
 *
 *     <shard>/damaged/1/000005.log ...   the files as they were
 *     <shard>/damaged/1/pending          there until what could be read of them is synced again
 *
 * An incident is created under another name, so that every numbered one is complete. Everything is synced before a
 * function returns.
 */
import assert from 'node:assert/strict'
import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { exists, numbersIn } from '../read-if-there.ts'
import { syncDirectory, syncFile } from '../write-file.ts'

/**
 * Copies logs of a shard.
 *
 * @param logs - the names of the files in the shard's directory.
 * @returns the path of the incident, which is pending.
 */
export async function makeIncident(directory: string, logs: readonly string[]): Promise<string> {
  assert(logs.length > 0, 'an incident has the logs of its shard')
  const incidents = incidentsOf(directory)
  const unfinished = join(incidents, 'unfinished')
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  await syncDirectory(directory)
  for (const name of logs) {
    await copyFile(join(directory, name), join(unfinished, name))
    await syncFile(join(unfinished, name), 'r+')
  }
  await syncFile(join(unfinished, 'pending'), 'w')
  await syncDirectory(unfinished)
  const last = (await numbersIn(incidents)).at(-1) ?? 0
  const incident = join(incidents, `${last + 1}`)
  await rename(unfinished, incident)
  await syncDirectory(incidents)
  return incident
}

/** Returns the paths of the incidents whose readable part an interrupted start has not put back yet. */
export async function pendingIncidents(directory: string): Promise<readonly string[]> {
  const incidents = incidentsOf(directory)
  const pending: string[] = []
  for (const number of await numbersIn(incidents)) {
    const incident = join(incidents, `${number}`)
    if (await exists(join(incident, 'pending'))) pending.push(incident)
  }
  return pending
}

/** Call this when what could be read of an incident's logs is synced again. */
export async function settleIncident(incident: string): Promise<void> {
  await rm(join(incident, 'pending'), { force: true })
  await syncDirectory(incident)
}

/** Returns the paths of all copies of a shard. Most shards have none. */
export async function damagedCopies(directory: string): Promise<readonly string[]> {
  const incidents = incidentsOf(directory)
  const names = await readdir(incidents).catch(() => [])
  return names.map((name) => join(incidents, name))
}

/**
 * Removes everything that was kept of damaged or torn files of a shard, also the shard as it was before a repair. What could be read of
 * it is in the shard, which must be open.
 *
 * @returns the paths, relative to the directory that holds the shards
 */
export async function removeCopies(directory: string): Promise<readonly string[]> {
  const shards = dirname(directory)
  const repaired = (await readdir(shards)).filter((name) =>
    name.startsWith(`${basename(directory)}.damaged-`),
  )
  const own = (await readdir(directory)).filter((name) => name === tornEnd)
  const found = [
    ...(await damagedCopies(directory)),
    ...own.map((name) => join(directory, name)),
    ...repaired.map((name) => join(shards, name)),
  ]
  for (const path of [...found, incidentsOf(directory)]) {
    await rm(path, { recursive: true, force: true })
  }
  if (found.length > 0) {
    await syncDirectory(directory)
    await syncDirectory(shards)
  }
  return found.map((path) => relative(shards, path))
}

/** The file in the directory of a shard that keeps an end that was cut off. */
export const tornEnd = 'torn-end'

function incidentsOf(directory: string): string {
  return join(directory, 'damaged')
}
