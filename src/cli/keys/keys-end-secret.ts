import { exitCodes } from "../../process/exit-codes.ts";
import { findKey, pathOf, readSecretName } from "../resources/find-entity.ts";
import { keyEntity } from "./keys-list.ts";
import { defineVerb } from "../verb.ts";

export const endSecretVerb = defineVerb({
  name: "end-secret",
  takes: "SECRET",
  summary: "end one of two live secrets now, such as the old one of a rotation",
  examples: ["keys end-secret sk-slc_1a2B3c4D"],
  async run({ args, client, io, isJson }) {
    const secret = readSecretName(args.one("secret by its first characters (sk-slc_...)"));
    const key = await findKey(client, secret);
    const publicId = secret.slice("sk-slc_".length);
    const answer = await client.request("DELETE", `${pathOf("/keys", key)}/secrets/${publicId}`);
    if (isJson) io.print(JSON.stringify(answer));
    else io.report(`${secret} is ended. ${keyEntity.title(key)} works with its other secret.`);
    return exitCodes.ok;
  },
});
