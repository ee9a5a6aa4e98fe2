/** `postbote server types`: the types of updates that a server knows. */
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { serverOperations } from './server-operations.ts'

export const typesCommand = remoteCommand(serverOperations.listUpdateTypes)
