/** `postbote server types`: the types of updates that a server knows. */
import { serverOperations } from './server-operations.ts'
import { tableLines } from '../../cli/output/print-result.ts'
import { itemTable } from '../../cli/remote/cells.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

export const typesCommand = remoteCommand(serverOperations.listUpdateTypes, {
  sentence: 'lists the types of updates that the server knows',
  lines: ({ types }) =>
    tableLines(
      itemTable(
        types.map(({ key_paths: paths, ...type }) => ({ ...type, key: paths.join(', ') })),
        ['type'],
        'others',
      ),
    ),
})
