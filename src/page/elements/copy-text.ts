/**
 * Copies the text of a field to the clipboard, and returns whether that was possible. Without TLS, a page of another machine
 * has no clipboard, but the old way still works there.
 */
export async function copyText(field: HTMLInputElement | HTMLTextAreaElement): Promise<boolean> {
  field.select()
  const isCopied = await navigator.clipboard
    ?.writeText(field.value)
    .then(() => true)
    .catch(() => document.execCommand('copy'))
  return isCopied ?? document.execCommand('copy')
}
