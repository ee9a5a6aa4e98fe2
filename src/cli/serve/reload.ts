/** `postbote reload`: replaces the workers of the running server, shows what its primary logs meanwhile, and returns when that is done. */
import { systemClock } from '../../clock.ts'
import { askServer } from './command-socket.ts'

export async function reload(directory: string): Promise<void> {
  const response = await askServer(directory, 'reload', systemClock, (step) =>
    process.stderr.write(step),
  )
  if (response === undefined) throw new Error(`no server runs on ${directory}`)
}
