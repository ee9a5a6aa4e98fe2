/** `postbote portal`: makes, lists and revokes links to the owner's page of a bot. */
import { ConfigError } from '../../config/config.ts'
import { anyText, onOff } from '../../config/config-values.ts'
import { portalOperations } from './portal-operations.ts'
import type { ParsedCommand } from '../../cli/commands/command-row.ts'
import { privateApiOf } from '../../cli/remote/private-api-of.ts'
import { printCall, remoteCommand } from '../../cli/remote/remote-command.ts'

const linkArgument = {
  name: '[link_id]',
  kind: anyText,
  sentence: 'Id of the link, unless --all is given.',
} as const
const allOption = { name: 'all', kind: onOff, sentence: 'All links of the bot.' } as const

export const portalCommands: readonly ParsedCommand[] = [
  remoteCommand(portalOperations.createPortalLink, {
    sentence: "creates a link to the owner's page of a bot and prints it; it is never shown again",
    fields: {
      ttl: { sentence: 'The link ends after this time.' },
      can: { defaultShown: 'all', sentence: 'What its page may do.' },
      origin: {
        defaultShown: 'none',
        sentence:
          'Origin, such as https://platform.example, whose pages may show the page in a frame.',
      },
    },
  }),
  remoteCommand(portalOperations.listPortalLinks),
  remoteCommand(portalOperations.revokePortalLinks, {
    sentence: "revokes a link to the owner's page of a bot, or all, and what they have open",
    arguments: [linkArgument],
    options: [allOption],
    async run(call, input) {
      const linkId = call.get(linkArgument)
      // A forgotten id must not select all of them.
      if ((linkId === undefined) !== call.has(allOption)) {
        throw new ConfigError(['portal revoke: expected either a link_id or --all'])
      }
      const api = await privateApiOf(call)
      const result =
        linkId === undefined
          ? await api.call(portalOperations.revokePortalLinks, input)
          : await api.call(portalOperations.revokePortalLink, { ...input, link_id: linkId })
      printCall(call, portalOperations.revokePortalLinks, result, input)
    },
  }),
]
