import { UnreadableUrlFile } from "../../store/errors.ts";
import { isMissing, needsTls } from "../../store/postgres/connection/postgres-trouble.ts";

/** What to do about a PostgreSQL database that cannot be used. */
export function adviceOnDatabase(error: unknown, url: string): string {
  if (error instanceof UnreadableUrlFile) {
    return "correct the path, or let the user of the gateway read the file";
  }
  if (isMissing(error)) {
    const { username, pathname } = new URL(url);
    const [owner, name] = [username, pathname.slice(1)].map(decodeURIComponent);
    return (
      `create it, such as with \`createdb --owner ${owner} --encoding UTF8 --template template0 ${name}\` ` +
      "as a superuser of the server, or correct its name in storage.url"
    );
  }
  if (needsTls(error)) {
    return (
      "add an sslmode to storage.url, such as ?sslmode=verify-full, or have pg_hba.conf let this " +
      "machine in without TLS"
    );
  }
  return (
    "check the address, the user and the password of storage.url, firewalls, pg_hba.conf, and that " +
    "the server runs; `psql` with the same URL must connect from this machine"
  );
}
