// cnidriver calls CNI plugins as a container runtime does: through libcni, the
// library of containerd, cri-o, Multus and cnitool, with capability arguments, so
// that runtimeConfig.deviceID reaches a plugin in exactly the way it does in a cluster.
//
//	cnidriver [-bin DIR:DIR] [-cache DIR] add|check|del -conf FILE -id CONTAINERID
//	          -netns PATH -ifname NAME [-cap JSON] [-args K=V;K=V]
//
// FILE is a network configuration (.conf, .json) or a list of them (.conflist).
// add prints the result, in the configuration's version, on standard output. An error
// is printed on standard error as the CNI's error object, and the exit status is 1;
// wrong usage ends with status 2.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

const usage = "usage: cnidriver [-bin DIR:DIR] [-cache DIR] add|check|del -conf FILE -id CONTAINERID " +
	"-netns PATH -ifname NAME [-cap JSON] [-args K=V;K=V]"

// request is what the command line asks for.
type request struct {
	command  string
	binDirs  []string
	cacheDir string
	conf     string
	runtime  libcni.RuntimeConf
}

// parse reads options before and after the command.
func parse(arguments []string) (*request, error) {
	var bin, capabilities, args string
	r := &request{}
	flags := flag.NewFlagSet("cnidriver", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&bin, "bin", "/opt/cni/bin", "directories of plugins")
	flags.StringVar(&r.cacheDir, "cache", libcni.CacheDir, "directory of cached results")
	flags.StringVar(&r.conf, "conf", "", "network configuration")
	flags.StringVar(&r.runtime.ContainerID, "id", "", "container id")
	flags.StringVar(&r.runtime.NetNS, "netns", "", "path of the network namespace")
	flags.StringVar(&r.runtime.IfName, "ifname", "", "interface name")
	flags.StringVar(&capabilities, "cap", "", "capability arguments, a JSON object")
	flags.StringVar(&args, "args", "", "CNI_ARGS")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	r.command = flags.Arg(0)
	if flags.NArg() > 0 {
		if err := flags.Parse(flags.Args()[1:]); err != nil {
			return nil, err
		}
	}
	switch {
	case r.command != "add" && r.command != "check" && r.command != "del":
		return nil, fmt.Errorf("no such command: %q", r.command)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case r.conf == "" || r.runtime.ContainerID == "" || r.runtime.IfName == "":
		return nil, errors.New("-conf, -id and -ifname are required")
	case r.runtime.NetNS == "" && r.command != "del":
		return nil, errors.New("-netns is required")
	}
	r.binDirs = filepath.SplitList(bin)
	if capabilities != "" {
		if err := json.Unmarshal([]byte(capabilities), &r.runtime.CapabilityArgs); err != nil {
			return nil, fmt.Errorf("-cap %s: %w", capabilities, err)
		}
	}
	for _, pair := range strings.Split(args, ";") {
		if pair == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("-args %q: %q is not NAME=VALUE", args, pair)
		}
		r.runtime.Args = append(r.runtime.Args, [2]string{key, value})
	}
	return r, nil
}

// load reads a list, or makes one of a single configuration, as containerd does.
func load(file string) (*libcni.NetworkConfigList, error) {
	if strings.HasSuffix(file, ".conflist") {
		return libcni.ConfListFromFile(file)
	}
	conf, err := libcni.ConfFromFile(file)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf)
}

func run(r *request) error {
	list, err := load(r.conf)
	if err != nil {
		return err
	}
	cni := libcni.NewCNIConfigWithCacheDir(r.binDirs, r.cacheDir, nil)
	switch r.command {
	case "add":
		result, err := cni.AddNetworkList(context.Background(), list, &r.runtime)
		if err != nil {
			return err
		}
		return result.PrintTo(os.Stdout)
	case "check":
		return cni.CheckNetworkList(context.Background(), list, &r.runtime)
	default:
		return cni.DelNetworkList(context.Background(), list, &r.runtime)
	}
}

// printError prints the plugin's own error object, or one of code 999 (the specification
// leaves 100 and above to the program) for what failed before or outside of a plugin.
func printError(err error) {
	var e *types.Error
	if !errors.As(err, &e) {
		e = &types.Error{Code: 999, Msg: err.Error()}
	}
	encoder := json.NewEncoder(os.Stderr)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(e) != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func main() {
	r, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "cnidriver: %v\n%s\n", err, usage)
		os.Exit(2)
	}
	if err := run(r); err != nil {
		printError(err)
		os.Exit(1)
	}
}
