/** Programs that create a key with a generated client. Arguments: address, token, application. */

export const typescriptProgram = `
import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

const [baseUrl = "", token = "", application_id = ""] = process.argv.slice(2);
const headers = { authorization: \`Bearer \${token}\` };
const client = createClient<paths>({ baseUrl, headers });
const { data, error } = await client.POST("/admin/v1/keys", {
  body: { application_id, plan: "pilot", note: "typescript" },
});
if (data === undefined) throw new Error(error.error.message);
const { api_key: text, key } = data;
const found = await client.GET("/admin/v1/keys/{id}", { params: { path: { id: key.id } } });
if (found.data?.note !== "typescript") throw new Error("the key is another one");
console.log(text);
`;

export const pythonProgram = `
import sys

from sluice_admin_api_client import AuthenticatedClient
from sluice_admin_api_client.api.keys import create_key, get_key
from sluice_admin_api_client.models import IssuedKey, NewKey

base_url, token, application = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=token)
body = NewKey(application_id=application, plan="pilot", note="python")
made = create_key.sync(client=client, body=body)
assert isinstance(made, IssuedKey), made
assert get_key.sync(id=made.key.id, client=client).note == "python"
print(made.api_key)
`;

export const goProgram = `
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", "Bearer "+os.Args[2])
		return nil
	}
	client, err := NewClientWithResponses(os.Args[1], WithRequestEditorFn(authorize))
	if err != nil {
		panic(err)
	}
	note := "go"
	body := CreateKeyJSONRequestBody{ApplicationId: os.Args[3], Plan: "pilot", Note: &note}
	made, err := client.CreateKeyWithResponse(context.Background(), nil, body)
	if err != nil || made.JSON201 == nil {
		panic(fmt.Sprint(err, string(made.Body)))
	}
	found, err := client.GetKeyWithResponse(context.Background(), made.JSON201.Key.Id)
	if err != nil || found.JSON200.Note != note {
		panic("the key is another one")
	}
	fmt.Println(made.JSON201.ApiKey)
}
`;
