/**
 * Runs the points of a list of what clients need from the server, one test each, side by side at one real server of
 * two workers: most of them wait for answers that are held back on purpose.
 *
 * The numbers are those of a list that was made from the sources and the traffic of 22 frameworks. Where that list and
 * the contract (SPEC) differ the contract stands, and the point says what the list has.
 */
import { test, type TestContext } from 'node:test'
import { type Server, startServer } from './server.ts'

/** All points start at the same time: on a slow machine a webhook is verified late. */
const usualFlags = ['--local', '--webhook-verify-timeout=60']

export type Point = (t: TestContext, server: Server) => Promise<void>

export function serverMust(
  title: string,
  points: readonly (readonly [string, Point])[],
  flags: readonly string[] = [],
): void {
  test(title, { concurrency: points.length, timeout: 240_000 }, async (t) => {
    const server = await startServer(t, { flags: [...usualFlags, ...flags] })
    await Promise.all(points.map(([name, point]) => t.test(name, (each) => point(each, server))))
  })
}
