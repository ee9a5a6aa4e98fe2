/** Whether the listeners can use their certificates, and for how long. Says nothing about listeners without TLS. */
import {
  type CertificateFiles,
  certificateEndMs,
  certificateFiles,
  readCertificate,
} from '../../app/read-certificates.ts'
import { endingSoonMs } from '../../app/ending-soon.ts'
import { type Clock, utcText } from '../../clock.ts'
import type { Config } from '../../config/config.ts'
import { messageOf } from '../../message-of.ts'
import { isOpenToAll } from '../../store/is-open-to-all.ts'
import { bad, type Finding, good, warn } from '../../store/postgres/finding.ts'

export function examineCertificates(config: Config, clock: Clock): readonly Finding[] {
  return certificateFiles(config).flatMap((files) => findingsOf(files, clock.nowMs()))
}

function findingsOf(files: CertificateFiles, nowMs: number): readonly Finding[] {
  const { cert, key } = files
  let endMs: number
  try {
    endMs = certificateEndMs(readCertificate(files).cert)
  } catch (error) {
    return [bad(messageOf(error))]
  }
  const findings = isOpenToAll(key)
    ? [warn(`every user of this machine can read ${key}: run chmod o= on it`)]
    : []
  const end = utcText(endMs).slice(0, 10)
  if (endMs <= nowMs)
    return [...findings, bad(`the certificate in ${cert} expired on ${end}: renew it`)]
  const isSoon = endMs - nowMs < endingSoonMs
  const text = `the certificate in ${cert} is valid until ${end}`
  return [...findings, isSoon ? warn(`${text}: renew it`) : good(text)]
}
