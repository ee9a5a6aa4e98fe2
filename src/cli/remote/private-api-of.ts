/** Which server a command calls: the options for that, and the client that they choose. */
import { ConfigError, configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { path, upstreamUrl } from '../../config/config-values.ts'
import { durationText, span } from '../../config/duration.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { privateApiCallMsMax, privateApiIdleMs } from '../limits.ts'
import { jsonOption } from '../output/view.ts'
import { RemoteApi } from './remote-api.ts'

const urlOption = {
  name: 'url',
  kind: upstreamUrl,
  defaultShown: 'where the server of --dir says that it listens',
  sentence: 'Private API of another server.',
} as const

const keyFileOption = {
  name: 'key-file',
  kind: path,
  defaultShown: 'that of --admin-key-file; required with --url',
  sentence: 'File that contains the admin key of the server, or another of its keys.',
} as const

const timeoutOption = {
  name: 'timeout',
  kind: span(1, privateApiCallMsMax / 1_000),
  default: durationText(privateApiIdleMs / 1_000),
  sentence:
    'The command fails if the server sends nothing for this long; tail and events connect again.',
} as const

/** The options of every command that calls a server. */
export const remoteOptions = [
  urlOption,
  keyFileOption,
  timeoutOption,
  jsonOption,
  optionTable.dir,
  optionTable.adminKeyFile,
  optionTable.adminIpAddress,
  optionTable.adminPort,
  optionTable.adminCert,
  optionTable.adminCertKey,
  configFileOption,
] as const

/**
 * Creates a client of the server that the options name.
 *
 * @throws ConfigError if `--url` has no `--key-file`: the key of this machine's server must not reach another one.
 */
export async function privateApiOf(call: CommandCall): Promise<RemoteApi> {
  const idleMs = call.need(timeoutOption) * 1_000
  const [url, keyFile] = [call.get(urlOption), call.get(keyFileOption)]
  if (url === undefined) {
    const config = call.config('client')
    const asked = keyFile === undefined ? config : { ...config, adminKeyFile: keyFile }
    return RemoteApi.ofConfig(asked, idleMs)
  }
  if (keyFile === undefined) {
    throw new ConfigError(['--url: expected --key-file FILE with a key of that server'])
  }
  return RemoteApi.ofUrl(url, keyFile, idleMs)
}
