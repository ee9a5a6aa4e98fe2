/**
 * Whether native code checks updates and encodes their records. Without it JavaScript does, which decides and writes the
 * same and takes longer: for whoever suspects the native code of an error. Threads and child processes inherit the variable.
 */
export const noNativeIngestVariable = 'POSTBOTE_NO_NATIVE_INGEST'

export const isIngestNative = process.env[noNativeIngestVariable] !== '1'
