#!/bin/sh
# Makes the Go package copilotpb of copilot.proto: sh generate.sh FOLDER_OF_THE_PROTO
# PROTOC is the compiler, by default protoc; python -m grpc_tools.protoc is one too.
set -eu
proto=$(cd "$1" && pwd)
cd "$(dirname "$0")"
mkdir -p copilotpb
package=example.com/copilot_go/copilotpb
${PROTOC:-protoc} "-I$proto" copilot.proto \
    "--plugin=protoc-gen-go=$(go tool -n protoc-gen-go)" \
    "--plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc)" \
    --go_out=copilotpb --go_opt=paths=source_relative "--go_opt=Mcopilot.proto=$package" \
    --go-grpc_out=copilotpb --go-grpc_opt=paths=source_relative "--go-grpc_opt=Mcopilot.proto=$package"
