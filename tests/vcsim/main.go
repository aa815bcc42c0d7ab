// A vCenter to test against: govmomi's simulator with a template, datastores of a stated size, workers that get stated
// addresses, and failures on request. Prints its URL on stdout and ends when its stdin is closed.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	_ "github.com/vmware/govmomi/pbm/simulator"
)

const (
	gib      = int64(1) << 30
	template = "fio-template"
)

type options struct {
	listen, user, password            string
	addresses, deny                   string
	maintenance, isolated, unattached string
	capacityGiB, freeGiB              int64
	cloneMs, addressMs                int
	failClone, noAddress, failDestroy int
	running, noTools                  bool
}

func read() options {
	var o options
	flag.StringVar(&o.listen, "l", "127.0.0.1:0", "address to listen on")
	flag.StringVar(&o.user, "username", "bench", "the only login that is let in")
	flag.StringVar(&o.password, "password-file", "", "file with its password")
	flag.StringVar(&o.addresses, "addresses", "", "addresses of workers in the order they are powered on, by commas")
	flag.StringVar(&o.deny, "deny", "", "privileges the account has not, by commas")
	flag.StringVar(&o.maintenance, "maintenance", "", "host in maintenance mode")
	flag.StringVar(&o.isolated, "isolated", "", "host without networks")
	flag.StringVar(&o.unattached, "unattached", "", "datastore no host has mounted")
	flag.Int64Var(&o.capacityGiB, "capacity-gib", 1000, "capacity of each datastore")
	flag.Int64Var(&o.freeGiB, "free-gib", 900, "free space of each datastore")
	flag.IntVar(&o.cloneMs, "clone-ms", 0, "how long a clone takes")
	flag.IntVar(&o.addressMs, "address-ms", 100, "from power on until the address is told")
	flag.IntVar(&o.failClone, "fail-clone", 0, "this clone (from 1) fails")
	flag.IntVar(&o.noAddress, "no-address", 0, "the worker powered on as this one (from 1) never gets an address")
	flag.IntVar(&o.failDestroy, "fail-destroy", 0, "so many destructions fail before one succeeds")
	flag.BoolVar(&o.running, "running", false, "the template is a VM that runs")
	flag.BoolVar(&o.noTools, "no-tools", false, "the template has no VMware Tools")
	flag.Parse()
	return o
}

// estate answers the calls that have to be answered otherwise than the simulator does.
type estate struct {
	options
	mutex                        sync.Mutex
	cloned, poweredOn, destroyed int
	addressList                  []string
	stand                        *stand
}

// next counts calls of a kind, from 1.
func (e *estate) next(count *int) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	*count++
	return *count
}

// stand answers calls that are turned to it instead of to the object they are for: the simulator itself knows no failures.
type stand struct {
	mo.HttpNfcLease // a managed object of any kind, which all that the simulator holds have to be
	denied          map[string]bool
}

func failing(ref types.ManagedObjectReference, id string) *simulator.Task {
	return simulator.CreateTask(simulator.Map.Get(ref), id, func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		return nil, &types.GenericVmConfigFault{Reason: "asked to fail"}
	})
}

func (s *stand) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	run := failing(req.This, "cloneVm").Run(ctx)
	return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: run}}
}

func (s *stand) DestroyTask(ctx *simulator.Context, req *types.Destroy_Task) soap.HasFault {
	run := failing(req.This, "destroy").Run(ctx)
	return &methods.Destroy_TaskBody{Res: &types.Destroy_TaskResponse{Returnval: run}}
}

// HasPrivilegeOnEntities refuses the privileges that were named.
func (s *stand) HasPrivilegeOnEntities(req *types.HasPrivilegeOnEntities) soap.HasFault {
	manager := simulator.Map.Get(req.This).(*simulator.AuthorizationManager)
	body := manager.HasPrivilegeOnEntities(req).(*methods.HasPrivilegeOnEntitiesBody)
	for i := range body.Res.Returnval {
		for j := range body.Res.Returnval[i].PrivAvailability {
			own := &body.Res.Returnval[i].PrivAvailability[j]
			own.IsGranted = !s.denied[own.PrivId]
		}
	}
	return body
}

// tell sets the address of a VM as VMware Tools would.
func tell(vm *simulator.VirtualMachine, address string) {
	ctx := simulator.SpoofContext()
	simulator.Map.WithLock(ctx, vm, func() {
		simulator.Map.Update(vm, []types.PropertyChange{
			{Name: "guest.ipAddress", Val: address},
			{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		})
	})
}

func (e *estate) handle(_ *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	switch method.Name {
	case "CloneVM_Task":
		if e.next(&e.cloned) == e.failClone {
			method.This = e.stand.Self
		}
	case "Destroy_Task":
		if e.next(&e.destroyed) <= e.failDestroy {
			method.This = e.stand.Self
		}
	case "PowerOnVM_Task":
		number := e.next(&e.poweredOn)
		vm, isVM := simulator.Map.Get(method.This).(*simulator.VirtualMachine)
		if isVM && number != e.noAddress && number <= len(e.addressList) {
			address := e.addressList[number-1]
			time.AfterFunc(time.Duration(e.addressMs)*time.Millisecond, func() { tell(vm, address) })
		}
	case "HasPrivilegeOnEntities":
		method.This = e.stand.Self
	}
	return nil, nil
}

func set(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Split(text, ",") {
		found[word] = true
	}
	return found
}

// furnish makes the template of one of the model's VMs, and gives hosts and datastores their state.
func (e *estate) furnish() error {
	for _, entity := range simulator.Map.All("VirtualMachine") {
		vm := entity.(*simulator.VirtualMachine)
		if vm.Name != "DC0_C0_RP0_VM0" {
			continue
		}
		e.prepare(vm)
	}
	for _, entity := range simulator.Map.All("Datastore") {
		store := entity.(*simulator.Datastore)
		store.Summary.Capacity, store.Summary.FreeSpace = e.capacityGiB*gib, e.freeGiB*gib
		store.Info.GetDatastoreInfo().FreeSpace = store.Summary.FreeSpace
		store.Host = nil
		if store.Name != e.unattached {
			store.Host = mounts(store)
		}
	}
	for _, entity := range simulator.Map.All("HostSystem") {
		host := entity.(*simulator.HostSystem)
		host.Runtime.InMaintenanceMode = host.Name == e.maintenance
		if host.Name == e.isolated {
			host.Network = nil
		}
	}
	return nil
}

// mounts has a datastore at every host; the simulator itself tells of the first alone.
func mounts(store *simulator.Datastore) []types.DatastoreHostMount {
	var found []types.DatastoreHostMount
	for _, entity := range simulator.Map.All("HostSystem") {
		found = append(found, types.DatastoreHostMount{
			Key: entity.Reference(),
			MountInfo: types.HostMountInfo{
				Path:       store.Info.GetDatastoreInfo().Url,
				AccessMode: string(types.HostMountModeReadWrite),
				Mounted:    types.NewBool(true),
				Accessible: types.NewBool(true),
			},
		})
	}
	return found
}

func (e *estate) prepare(vm *simulator.VirtualMachine) {
	vm.Name, vm.Config.Name, vm.Summary.Config.Name = template, template, template
	if !e.noTools {
		vm.Guest.ToolsVersionStatus2 = string(types.VirtualMachineToolsVersionStatusGuestToolsUnmanaged)
		vm.Guest.ToolsStatus = types.VirtualMachineToolsStatusToolsNotRunning
	}
	if e.running {
		vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOn
		vm.Summary.Runtime.PowerState = vm.Runtime.PowerState
		return
	}
	vm.Config.Template, vm.Summary.Config.Template = true, true
	vm.ResourcePool = nil
}

func serve(o options) error {
	own := &estate{options: o, stand: &stand{denied: set(o.deny)}}
	own.stand.Self = types.ManagedObjectReference{Type: "HttpNfcLease", Value: "stand"}
	if o.addresses != "" {
		own.addressList = strings.Split(o.addresses, ",")
	}
	secret, err := os.ReadFile(o.password)
	if err != nil {
		return err
	}
	model := simulator.VPX()
	model.Autostart, model.Datastore, model.Machine, model.Host = false, 3, 2, 1
	if err := model.Create(); err != nil {
		return err
	}
	defer model.Remove()
	if err := own.furnish(); err != nil {
		return err
	}
	if o.cloneMs > 0 {
		simulator.TaskDelay.MethodDelay = map[string]int{"CloneVm": o.cloneMs}
	}
	simulator.Map.Put(own.stand)
	simulator.Map.Handler = own.handle
	model.Service.Listen = &url.URL{Host: o.listen, User: url.UserPassword(o.user, strings.TrimSpace(string(secret)))}
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	server := model.Service.NewServer()
	defer server.Close()
	fmt.Printf("https://%s\n", server.URL.Host)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func main() {
	log.SetOutput(io.Discard)
	if err := serve(read()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
