/**
 * Whether native code splits, checks and encodes what is pushed. The code in JavaScript has the same rules and makes the same
 * bytes, more slowly; the variable lets operators exclude the native code as the cause of a trouble.
 */
export const noNativeIngestVariable = 'POSTBOTE_NO_NATIVE_INGEST'
export const usesNativeIngest = process.env[noNativeIngestVariable] !== '1'
