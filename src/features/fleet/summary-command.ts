/** `postbote summary`: the sums over all bots of the server. */
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { fleetOperations } from './fleet-operations.ts'

export const summaryCommand = remoteCommand(fleetOperations.getSummary, {
  sentence: 'shows how many bots there are, how many of them are failing, and what is pending',
})
