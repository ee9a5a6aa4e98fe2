/** Which server a command calls: the options for that, and the client that they choose. */
import { ConfigError, configFileOption } from '../../config/config.ts'
import { optionTable } from '../../config/config-options.ts'
import { path, upstreamUrl } from '../../config/config-values.ts'
import type { CommandCall } from '../commands/command-call.ts'
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

/** The options of every command that calls a server. */
export const remoteOptions = [
  urlOption,
  keyFileOption,
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
  const [url, keyFile] = [call.get(urlOption), call.get(keyFileOption)]
  if (url === undefined) {
    const config = call.config('client')
    return RemoteApi.ofConfig(keyFile === undefined ? config : { ...config, adminKeyFile: keyFile })
  }
  if (keyFile === undefined) {
    throw new ConfigError(['--url: expected --key-file FILE with a key of that server'])
  }
  return RemoteApi.ofUrl(url, keyFile)
}
