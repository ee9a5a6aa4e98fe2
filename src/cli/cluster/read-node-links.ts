/** What a node needs for its links to other nodes, from its options and the files that they name. */
import { readFileSync } from 'node:fs'
import { linkSecurityFrom, type LinkSecurityFiles } from '../../cluster/link/link-security.ts'
import { describeAddress } from '../../cluster/listener.ts'
import type { NodeLinks } from '../../cluster/node-links.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { messageOf } from '../../message-of.ts'

/** Returns undefined for a node that is alone. */
export function readNodeLinks(config: Config): NodeLinks | undefined {
  const { clusterListen: listen, clusterAdvertise: advertise = listen } = config
  const files = filesOf(config)
  if (listen === undefined || advertise === undefined || files === undefined) return undefined
  try {
    return {
      ...listen,
      address: describeAddress(advertise),
      security: linkSecurityFrom(files, (path) => readFileSync(path)),
    }
  } catch (error) {
    throw new ConfigError([messageOf(error)])
  }
}

function filesOf(config: Config): LinkSecurityFiles | undefined {
  const { clusterKeyFile: key, clusterCert: cert, clusterCertKey: certKey, clusterCa: ca } = config
  if (key !== undefined) return { key }
  if (cert === undefined || certKey === undefined || ca === undefined) return undefined
  return { cert, certKey, ca }
}
