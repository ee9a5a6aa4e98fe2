/**
 * Runs the points of a list of what clients need from the server, each as a test. They run concurrently against one
 * real server with two workers, because most of them wait for responses that are held back on purpose.
 *
 * The numbers are those of a list that was compiled from the source code and the traffic of 22 frameworks. If the list
 * and the contract differ, the contract applies, and the point mentions what the list has.
 */
import { test, type TestContext } from 'node:test'
import { type Server, startServer } from './server.ts'

/** All points start at the same time, so on a slow machine the verification of a webhook takes longer. */
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
