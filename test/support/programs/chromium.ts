/**
 * Debian's Chromium, which scripts/install-test-tools installs, driven by playwright-core. Its headless shell has the same engine
 * without the windows and services of the browser: it starts for a third of the CPU, which all pages of the tests cost otherwise.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { EndingTest } from '../server/server.ts'

const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) =>
  existsSync(path),
)

/** Why there is no browser; undefined if there is one. */
export function chromiumObstacle(): string | undefined {
  return executablePath === undefined
    ? 'chromium is not installed: ./scripts/install-test-tools'
    : undefined
}

/** Starts a browser that ends with the test. It has no sandbox, since tests may run as root, and sees only loopback. */
export async function startChromium(t: EndingTest): Promise<Browser> {
  assert(executablePath !== undefined, chromiumObstacle())
  const browser = await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-background-networking',
      '--disable-component-update',
      // A page that a test makes up for a platform may have a page of this machine in a frame.
      '--disable-features=LocalNetworkAccessChecks',
    ],
  })
  t.after(() => browser.close())
  return browser
}
