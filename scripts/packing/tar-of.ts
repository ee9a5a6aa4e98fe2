/**
 * Packs a folder so that the same files give the same bytes on every machine: names are sorted, all files have the time of the
 * release and belong to root, and they are as readable as Debian installs files, whatever the umask was that made them.
 */
import { run } from './run.ts'

export interface TarOptions {
  readonly folder: string
  readonly to: string
  /** In seconds since 1970; each file gets it. */
  readonly epochS: number
  /** The only entry of the folder that gets into the archive. */
  readonly only?: string
}

/** Empty folders that the archive gets, too, with an owner or a mode of their own. */
export interface SpecialFolder {
  readonly name: string
  readonly owner: number
  readonly mode: string
}

/** Writes a tar archive of what a folder has in it. */
export function tarOf(options: TarOptions, special: readonly SpecialFolder[] = []): void {
  const { folder, to, epochS, only = '.' } = options
  const same = ['--sort=name', `--mtime=@${epochS}`, '--format=gnu', '--numeric-owner', '-C']
  // podman refuses an archive that has a name twice.
  const excluded = special.map(({ name }) => `--exclude=./${name}`)
  const root = ['--owner=0', '--group=0', '--mode=u=rwX,go=rX', '--anchored', ...excluded]
  run('tar', [...root, ...same, folder, '-cf', to, only])
  for (const { name, owner, mode } of special) {
    const own = [`--owner=${owner}`, `--group=${owner}`, `--mode=${mode}`]
    // Any folder serves as the source of an empty one.
    const renamed = [`--transform=s,^\\.$,./${name},`, '--no-recursion']
    run('tar', [...own, ...renamed, ...same, folder, '-rf', to, '.'])
  }
}
