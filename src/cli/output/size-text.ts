import { kib, mib } from '../../limits.ts'

/** Returns a number of bytes for people, such as `12.3 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < mib) return `${Math.ceil(bytes / kib)} KiB`
  return bytes < 1_024 * mib
    ? `${(bytes / mib).toFixed(1)} MiB`
    : `${(bytes / mib / 1_024).toFixed(1)} GiB`
}
