import { readFileSync } from 'node:fs'
import { hostAndPort } from '../cluster/link/link-address.ts'
import { linkSecurityFrom } from '../cluster/link/link-security.ts'
import type { NodeLinks } from '../cluster/node-links.ts'
import type { Config } from '../config/config.ts'

/** Returns undefined for a node that is alone. */
export function readNodeLinks(_config: Config): NodeLinks | undefined {
  const listen = process.env['HACK_LISTEN']
  if (listen === undefined) return undefined
  return {
    ...hostAndPort(listen),
    address: listen,
    security: linkSecurityFrom({ key: process.env['HACK_KEY'] ?? '' }, (path) =>
      readFileSync(path),
    ),
  }
}
