/** Returns a JSON object with one more field, `update`, which is byte for byte as it was pushed. */
export function jsonWithUpdate(fields: object, text: Buffer): Buffer {
  const head = JSON.stringify(fields).slice(0, -1)
  return Buffer.concat([Buffer.from(`${head},"update":{`), text, Buffer.from('}}')])
}
