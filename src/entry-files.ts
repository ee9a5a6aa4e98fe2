/**
 * The entry files of processes and threads, and the file with the version of the program. The build replaces each entry
 * file but the bench, and main.js, with a bundle, in which `import.meta.url` is the bundle's: so all files that use it lie
 * one folder below dist/.
 */
export const entryFiles = {
  program: new URL('./program.js', import.meta.url),
  worker: new URL('../workers/cluster-worker.js', import.meta.url),
  checkUpdates: new URL('../workers/check-updates.js', import.meta.url),
  compressUpdates: new URL('../workers/compress-updates.js', import.meta.url),
  checkAddress: new URL('../workers/check-address.js', import.meta.url),
  verifyFile: new URL('../workers/verify-file.js', import.meta.url),
  readOriginAnswer: new URL('../workers/read-origin-answer.js', import.meta.url),
  exportSpans: new URL('../workers/export-spans.js', import.meta.url),
  manifest: new URL('../../package.json', import.meta.url),
  /** Only in a checkout. */
  bench: new URL('../bench/main.js', import.meta.url),
} as const
