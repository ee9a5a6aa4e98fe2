import { path } from '../../config/config-values.ts'

/** Names a file with options of the server. It is not in the table of options, because it is a source of them. */
export const configFileOption = {
  name: 'config',
  kind: path,
  sentence: 'JSON file with options of the server.',
} as const
