import { readRecord, readText } from "../output/reply-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { receiptNotes } from "../resources/receipt.ts";
import { entities, findEntity, readSecretName, titleOf } from "../verbs/entities.ts";
import type { VerbCall } from "../verbs/verb.ts";

/** Ends a secret by its name, which also identifies its key. */
export async function endSecret({ argument, client, io, isJson }: VerbCall): Promise<number> {
  const secret = readSecretName(argument ?? "");
  const key = await findEntity(client, { entity: entities.key, named: secret, owners: {} });
  const path = `/keys/${readText(key, "id")}/secrets/${secret.slice("sk-slc_".length)}`;
  const answer = await client.request("DELETE", path);
  if (isJson) io.print(JSON.stringify(answer));
  else {
    const title = titleOf(entities.key, key);
    io.report(`${secret} has ended. ${title} works with its other secret.`);
    for (const note of await receiptNotes(client, readRecord(answer))) io.report(note);
  }
  return exitCodes.ok;
}
