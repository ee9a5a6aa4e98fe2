/**
 * Whether the listeners can use their certificates, for how long, and whether the server that runs has read them. Says nothing about
 * listeners without TLS.
 */
import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { connect } from 'node:tls'
import {
  type CertificateFiles,
  certificateEndMs,
  certificateFiles,
  certificateProblem,
  readCertificate,
} from '../../worker/read-certificates.ts'
import { endingSoonMs } from '../../kit/limits.ts'
import { type Clock, utcText } from '../../kit/clock.ts'
import type { Config } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { isOpenToAll } from '../../store/open-to-all.ts'
import { answerMsMax } from '../limits.ts'
import { statusOf } from '../serve/command-socket.ts'
import { bad, type Finding, good, warn } from '../../kit/finding.ts'

export async function examineCertificates(
  config: Config,
  clock: Clock,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const allFiles = certificateFiles(config)
  const running = allFiles.length === 0 ? undefined : await statusOf(resolve(config.dir), clock)
  for (const files of allFiles) {
    try {
      const { cert: pem } = readCertificate(files)
      findings.push(...findingsOf(files, pem, clock.nowMs()))
      findings.push(...(await shownFindings(files, pem, running?.[files.listener])))
    } catch (error) {
      findings.push(bad(messageOf(error)))
    }
  }
  return findings
}

function findingsOf({ cert, key }: CertificateFiles, pem: string, nowMs: number): Finding[] {
  const findings = isOpenToAll(key)
    ? [warn(`every user of this machine can read ${key}: run chmod o= on it`)]
    : []
  const endMs = certificateEndMs(pem)
  const problem = certificateProblem(pem, nowMs)
  if (problem !== undefined) return [...findings, bad(`the certificate in ${cert} ${problem}`)]
  const text = `the certificate in ${cert} is valid until ${dayOf(endMs)}`
  const isSoon = endMs - nowMs < endingSoonMs
  return [...findings, isSoon ? warn(`${text}: renew it`) : good(text)]
}

/** A renewal without a reload is noticed by nobody before the old certificate expires. */
async function shownFindings(
  { cert }: CertificateFiles,
  pem: string,
  address: string | undefined,
): Promise<readonly Finding[]> {
  const shown = address === undefined ? undefined : await shownAt(address)
  if (shown === undefined || shown.raw.equals(new X509Certificate(pem).raw)) return []
  const end = dayOf(certificateEndMs(shown.toString()))
  return [
    warn(
      `the server that runs shows another certificate than ${cert}, valid until ${end}: run postbote reload`,
    ),
  ]
}

/** Resolves with undefined if nothing there speaks TLS, which other findings report. */
function shownAt(address: string): Promise<X509Certificate | undefined> {
  const { hostname, port } = new URL(`tls://${address}`)
  return new Promise((resolved) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port),
      rejectUnauthorized: false,
      timeout: answerMsMax,
    })
    const end = (shown?: X509Certificate): void => {
      socket.destroy()
      resolved(shown)
    }
    socket.once('secureConnect', () => end(socket.getPeerX509Certificate()))
    socket.once('timeout', () => end())
    socket.once('error', () => end())
  })
}

function dayOf(timeMs: number): string {
  return utcText(timeMs).slice(0, 10)
}
