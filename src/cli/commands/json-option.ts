import { onOff } from '../../config/config-values.ts'

export const jsonOption = {
  name: 'json',
  kind: onOff,
  sentence: 'Prints JSON for programs instead of text for people.',
} as const
