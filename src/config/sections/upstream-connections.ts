import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { z } from "zod";
import { Secret } from "../../domain/keys/secret.ts";
import type { ConnectionSettings } from "../../domain/upstream-settings.ts";
import { duration, wholeNumber } from "../../settings/values.ts";

/** `idle`: how long servers of the kind are known to keep idle connections. */
export function connectionsSchema(idle: string) {
  return z
    .strictObject({
      idle: duration(idle, ["0s", "10m"]).describe(
        "How long an idle connection is kept. Set it below the server's own timeout.",
      ),
      age: duration("5m", ["1s", "24h"]).describe("A connection is not reused after this time."),
      most_idle: wholeNumber(512, [0, 65_336]).describe("Maximum idle connections per host."),
    })
    .prefault({})
    .describe("Connections kept for further requests.");
}

const certificates = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export function pemCertificates(about: string) {
  return z
    .string()
    .refine(hasCertificates, "must be one or more certificates in PEM format: the text, not a path")
    .meta({ title: "certificates", description: about });
}

function hasCertificates(text: string): boolean {
  const found = text.match(certificates) ?? [];
  return (
    found.length > 0 &&
    found.every((certificate) => canRead(() => new X509Certificate(certificate)))
  );
}

const privateKey = z
  .string()
  .refine((text) => canRead(() => createPrivateKey(text)), "must be a private key in PEM format")
  .transform((text) => new Secret(text))
  .meta({ title: "secret", description: "Private key of `certificate`, in PEM format." });

function canRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}

export const upstreamTls = z
  .strictObject({
    ca: pemCertificates(
      "Authorities for its certificate, in PEM format, instead of the usual ones.",
    ).optional(),
    certificate: pemCertificates(
      "Client certificate, in PEM format, with its intermediates.",
    ).optional(),
    key: privateKey.optional(),
    server_name: z
      .string()
      .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/, "must be the name of a host")
      .optional()
      .describe("Name in the upstream's certificate, if it differs from the host."),
  })
  .refine(({ certificate, key }) => (certificate === undefined) === (key === undefined), {
    error: "must have both certificate and key, or neither",
  })
  .optional()
  .describe("TLS to the upstream. Its certificate is always verified.");

type Connections = z.output<ReturnType<typeof connectionsSchema>>;
type Tls = z.output<typeof upstreamTls>;

export function buildConnections(
  { idle: idleMs, age: ageMs, most_idle: mostIdle }: Connections,
  tls: Tls,
): ConnectionSettings {
  const texts = [tls?.ca, tls?.certificate, tls?.key?.reveal(), tls?.server_name];
  const id = createHash("sha256").update(JSON.stringify([idleMs, ageMs, mostIdle, texts]));
  return {
    id: id.digest("base64url"),
    idleMs,
    ageMs,
    mostIdle,
    tls: tls && {
      authorities: tls.ca,
      certificate: tls.certificate,
      key: tls.key,
      serverName: tls.server_name,
    },
  };
}
