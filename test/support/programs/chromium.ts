/** Debian's Chromium, which scripts/install-test-tools installs, driven by playwright-core. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { EndingTest } from '../server/server.ts'

const executablePath = '/usr/bin/chromium'

/** Why there is no browser; undefined if there is one. */
export function chromiumObstacle(): string | undefined {
  return existsSync(executablePath)
    ? undefined
    : 'chromium is not installed: ./scripts/install-test-tools'
}

/** Starts a browser that ends with the test. It has no sandbox, since tests may run as root, and sees only loopback. */
export async function startChromium(t: EndingTest): Promise<Browser> {
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
