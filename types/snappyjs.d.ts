declare module 'snappyjs' {
  /** Throws where the bytes are no Snappy block, or where it would become longer than `maxLength` bytes. */
  export function uncompress(compressed: Uint8Array, maxLength?: number): Uint8Array
}
